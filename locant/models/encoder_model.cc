#include "locant/models/encoder_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "locant/layers/embedding.h"

namespace locant::inline v0 {

EncoderModel::EncoderModel(EncoderParts parts) : parts_(std::move(parts)) {}

ModelOutput EncoderModel::run(const ModelInput& input) const {
  const Batch batch = make_batch(input, parts_.info, parts_.positions);
  ModelOutput out;
  out.offsets = batch.offsets;
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  parts_.head.run(encode(batch, AttentionWish(input, out), *work), batch, out);
  return out;
}

// -> (T, D) in work.a
View EncoderModel::embed(const Batch& batch, Workspace& work) const {
  const InputEmbeddings& e = parts_.embeddings;
  const int64_t tokens = batch.tokens(), width = parts_.info.hidden_size;
  const View x = work.a.take(tokens, width);
  const View sum = e.projection ? work.embedded.take(tokens, e.words.shape[1]) : x;
  gather_rows(e.words, batch.ids, false, sum);
  if (e.positions) gather_rows(e.positions, batch.positions, true, sum);
  if (e.token_types) gather_rows(e.token_types, batch.token_types, true, sum);
  if (e.projection) e.projection.run(sum, x);
  e.norm.run(x, x);
  return x;
}

// activation(convolution(x)), (T, D); beyond a sequence's ends there are zeros.
View EncoderModel::convolve(const ConstView& x, const Batch& batch, Workspace& work) const {
  const ConvolutionStep& step = parts_.convolution;
  const int64_t tokens = x.shape[0], width = x.shape[1], half = (step.kernel - 1) / 2;
  const auto groups = static_cast<int64_t>(step.groups.size());
  const int64_t part = width / groups;
  const View taps = work.gathered.take(tokens, step.kernel * part);
  const View out = work.convolved.take(tokens, width);
  for (int64_t group = 0; group < groups; ++group) {
    for (const Sequence& s : batch.sequences)
      for (int64_t i = 0; i < s.q_len; ++i)
        for (int64_t tap = 0; tap < step.kernel; ++tap) {
          const int64_t from = i + tap - half;
          float* to = taps.at<float>(s.q_begin + i, tap * part);
          if (from < 0 || from >= s.q_len)
            std::fill_n(to, part, 0.0f);
          else
            std::copy_n(x.at<float>(s.q_begin + from, group * part), part, to);
        }
    const int64_t shape[] = {tokens, part}, strides[] = {width, 1};
    const View columns(out.at<float>(0, group * part), DType::f32, shape, strides);
    step.groups[group].run(taps, columns, {.activation = step.activation, .residual = {}});
  }
  return out;
}

// The enhanced mask decoder: out = last(last(h + positions; h); h). `other` is room for the first.
void EncoderModel::decode(const Batch& batch, const View& h, std::vector<Tensor>* probabilities,
                          Workspace& work, const View& other, const View& out) const {
  const EncoderLayer& last = parts_.layers.back();
  const View queries = work.embedded.take(h.shape[0], h.shape[1]);
  std::copy_n(h.at<float>(), h.size(), queries.at<float>());
  gather_rows(parts_.decoder_positions, batch.positions, true, queries);
  last.run(queries, h, batch.sequences, work.scratch, other);
  last.run(other, h, batch.sequences, work.scratch, out, probabilities);
}

Tensor EncoderModel::encode(const Batch& batch, AttentionWish wish, Workspace& work) const {
  const int64_t tokens = batch.tokens(), width = parts_.info.hidden_size;
  Tensor result = Tensor::undefined(DType::f32, std::array{tokens, width});
  View x = embed(batch, work), y = work.b.take(tokens, width);
  const bool twice = static_cast<bool>(parts_.decoder_positions);
  const size_t layers = parts_.layers.size();
  for (size_t n = 0; n < layers; ++n) {
    const bool last = n + 1 == layers;
    std::vector<Tensor>* const attentions = wish.of(static_cast<int64_t>(n));
    if (last && twice) {
      decode(batch, x, attentions, work, y, result.view());
      break;
    }
    const View out = last ? result.view() : y;
    if (n == 0 && parts_.convolution.kernel > 0) {
      const View convolved = convolve(x, batch, work);
      parts_.layers[n].run(x, batch.sequences, work.scratch, out, attentions);
      parts_.convolution.norm.run(out, convolved, out);
    } else {
      parts_.layers[n].run(x, batch.sequences, work.scratch, out, attentions);
    }
    std::swap(x, y);
  }
  return result;
}

}  // namespace locant::inline v0
