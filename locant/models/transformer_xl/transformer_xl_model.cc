#include "locant/models/transformer_xl/transformer_xl_model.h"

#include <algorithm>
#include <utility>

#include "locant/layers/attend.h"
#include "locant/layers/embedding.h"
#include "locant/models/sampling.h"

namespace locant::inline v0 {

TransformerXLModel::TransformerXLModel(TransformerXLParts parts)
    : parts_(std::move(parts)), encodings_(parts_.encodings, parts_.farthest) {}

View TransformerXLModel::forward(const Batch& batch, const Memories& memories, int64_t window,
                                 const Cached* cached, std::vector<Tensor>* mems,
                                 AttentionWish wish, Workspace& work) const {
  const int64_t tokens = batch.tokens(), width = info().hidden_size;
  AttendOptions options;
  options.sequences = cached != nullptr ? cached->sequences : memories.sequences();
  options.causal = true;
  options.window_left = window;
  int64_t behind = 0;
  for (const Sequence& s : options.sequences) behind = std::max(behind, s.k_len - 1);
  if (window >= 0) behind = std::min(behind, window);
  const auto encodings = encodings_.get(behind, 0);

  View x = work.a.take(tokens, width), y = work.b.take(tokens, width);
  parts_.words.run(batch.ids, work.rows, work.projected, x);
  for (int64_t n = 0; n < info().layers; ++n) {
    const RecurrentLayer& layer = parts_.layers[static_cast<size_t>(n)];
    if (mems != nullptr) memories.keep(n, x, {.mem_len = parts_.mem_len}, *mems);
    const ConstView joined = memories.join(n, x, work.joined);
    RecurrentLayer::KeysValues kv = layer.project_keys_values(joined, work.scratch);
    if (cached != nullptr) {
      const View keys = cached->cache.keys(n), values = cached->cache.values(n);
      for (size_t i = 0; i < cached->sequences.size(); ++i) {
        const Sequence& from = memories.sequences()[i];
        const Sequence& to = cached->sequences[i];
        const int64_t row = to.k_begin + to.k_len - from.k_len;
        copy_rows(kv.keys, from.k_begin, from.k_len, keys, row);
        copy_rows(kv.values, from.k_begin, from.k_len, values, row);
      }
      kv = {keys, values};
    }
    const View q = layer.project_queries(x, work.scratch);
    const View context = layer.context(tokens, work.scratch);
    options.probabilities = wish.of(n);
    attend(q, kv.keys, kv.values, *(*encodings)[static_cast<size_t>(n)], options,
           layer.heads_of_context(context));
    layer.finish(x, context, work.scratch, y);
    std::swap(x, y);
  }
  return x;
}

View TransformerXLModel::last_rows(const Batch& batch, const ConstView& x, Workspace& work) const {
  std::vector<int64_t> rows;
  for (size_t n = 1; n < batch.offsets.size(); ++n) rows.push_back(batch.offsets[n] - 1);
  const View out = work.last.take(static_cast<int64_t>(rows.size()), x.shape[1]);
  gather_rows(x, rows, false, out);
  return out;
}

ModelOutput TransformerXLModel::run(const ModelInput& input) const {
  const int64_t mem_len = parts_.mem_len;
  const Batch batch = make_batch(input, info(), {});
  const Memories memories(input, info(), batch, mem_len);
  ModelOutput out;
  out.offsets = batch.offsets;
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  const View x = forward(batch, memories, parts_.same_length ? mem_len - 1 : -1, nullptr,
                         input.use_mems ? &out.mems : nullptr, AttentionWish(input, out), *work);
  if (info().head == "causal_lm") {
    out.logits = Tensor(DType::f32, {x.shape[0], info().vocab_size});
    parts_.softmax.run(x, out.logits.view());
  } else if (parts_.classifier) {
    const View last = last_rows(batch, x, *work);
    out.logits = Tensor(DType::f32, {last.shape[0], parts_.classifier.outputs()});
    parts_.classifier.run(last, out.logits.view());
  } else {
    out.last_hidden_state = Tensor(DType::f32, {x.shape[0], x.shape[1]});
    std::copy_n(x.at<float>(), x.size(), out.last_hidden_state.view().at<float>());
  }
  return out;
}

// A memory's keys and values are functions of its rows alone: they are kept, not made anew, and the
// window is what mem_len leaves of them.
std::vector<std::vector<int64_t>> TransformerXLModel::generate(
    const ModelInput& input, const GenerateOptions& options) const {
  if (info().head != "causal_lm") return Model::generate(input, options);
  Batch batch = make_batch(input, info(), {});
  const auto count = static_cast<int64_t>(input.ids.size());
  Generation generation(options, parts_.stop, count, info().vocab_size);
  if (count == 0) return {};
  const RecurrentLayer& first = parts_.layers[0];
  KvCache cache(info().layers, count, first.heads, first.head_dim, false);
  const int64_t mem_len = parts_.mem_len;
  auto memories = std::make_unique<Memories>(input, info(), batch, mem_len);
  std::vector<int64_t> lengths;  // memory and text; 0: has ended
  for (const Sequence& s : memories->sequences()) lengths.push_back(s.k_len);
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  int64_t window = parts_.same_length ? mem_len - 1 : -1;
  while (true) {
    cache.reserve(lengths);
    Cached cached{cache, memories->sequences()};
    for (size_t i = 0; i < cached.sequences.size(); ++i) {
      const int64_t n = generation.live()[i];
      Sequence& s = cached.sequences[i];
      s.k_begin = cache.begin(n);
      s.k_len = lengths[n];
      s.q_start = lengths[n] - s.q_len;
    }
    const View x = forward(batch, *memories, window, &cached, nullptr, {}, *work);
    const View last = last_rows(batch, x, *work);
    const View scores = (*work).scores.take(last.shape[0], info().vocab_size);
    parts_.softmax.run(last, scores);
    generation.step(scores);
    const std::vector<int64_t>& live = generation.live();
    if (live.empty()) return generation.take();
    ModelInput next;
    std::vector<int64_t> longer(lengths.size(), 0);
    for (const int64_t n : live) {
      next.ids.push_back({generation.last(n)});
      longer[n] = lengths[n] + 1;
    }
    lengths = std::move(longer);
    batch = make_batch(next, info(), {});
    memories = std::make_unique<Memories>(next, info(), batch, 0);
    if (!parts_.same_length && mem_len > 0) window = mem_len;
  }
}

}  // namespace locant::inline v0
