#include "locant/models/xlnet/xlnet_model.h"

#include <algorithm>
#include <utility>

#include "locant/core/error.h"
#include "locant/encodings/xlnet/xlnet.h"
#include "locant/layers/attend.h"
#include "locant/layers/embedding.h"
#include "locant/layers/two_stream.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "model";

// Empty, or a matrix for each sequence with a column for each of its tokens.
void check_matrices(const char* name, const std::vector<ConstView>& matrices,
                    const ModelInput& input, bool square) {
  if (matrices.empty()) return;
  require(matrices.size() == input.ids.size(), kScope, name, " has ", matrices.size(),
          " sequences but ids has ", input.ids.size());
  for (size_t n = 0; n < matrices.size(); ++n) {
    const ConstView& m = matrices[n];
    const auto length = static_cast<int64_t>(input.ids[n].size());
    require(m.rank == 2 && m.dtype == DType::f32 && m.shape[1] == length &&
                (square ? m.shape[0] == length : m.shape[0] >= 1),
            kScope, name, "[", n, "] must be f32 (", square ? "L" : "T", ", L) with L = ", length,
            ", the tokens of ids[", n, "], got ", name_of(m.dtype), " ", shape_text(m));
  }
}

// A matrix as a batch of one.
ConstView batch_of_one(const ConstView& m) {
  const int64_t shape[] = {1, m.shape[0], m.shape[1]};
  const int64_t strides[] = {0, m.strides[0], m.strides[1]};
  return ConstView(m.data, m.dtype, shape, strides);
}

// Rows [begin, begin + count) of (1, H, rows, d).
View rows_of(const View& heads, int64_t begin, int64_t count) {
  View out = heads;
  out.data = heads.at<float>(0, 0, begin);
  out.shape[2] = count;
  return out;
}

}  // namespace

struct XLNetModel::Call {
  Call(const ModelInput& input, const XLNetParts& parts)
      : input(input),
        batch(make_batch(input, parts.info, {})),
        memories(input, parts.info, batch, 0) {
    check_matrices("perm_mask", input.perm_masks, input, true);
    check_matrices("target_mapping", input.target_mappings, input, false);
    require(input.attention_layer < 0 || !masked(), kScope,
            "attentions are given without perm_mask and target_mapping only");
    // Without token types there is no segment term; the memory is in segment 0.
    if (!input.token_types.empty()) key_segments = memories.join(batch.token_types, 0);
    for (const ConstView& mapping : input.target_mappings) {
      targets.push_back(rows);
      rows += mapping.shape[0];
    }
  }

  bool two_streams() const { return !input.target_mappings.empty(); }
  bool masked() const { return two_streams() || !input.perm_masks.empty(); }

  const ModelInput& input;
  Batch batch;
  Memories memories;
  std::vector<int64_t> key_segments;  // (rows of memories and tokens), or empty
  std::vector<int64_t> targets;       // the first target of each sequence
  int64_t rows = 0;                   // of all targets
  std::shared_ptr<const ProjectedEncodings::List> encodings;
  AttentionWish wish;
};

XLNetModel::XLNetModel(XLNetParts parts)
    : parts_(std::move(parts)), encodings_(parts_.encodings, parts_.farthest) {}

void XLNetModel::attention(int64_t layer, const Call& call, const View& q, const View& targets,
                           const RecurrentLayer::KeysValues& kv, const View& out,
                           const View& out_targets) const {
  const Encoding& encoding = *(*call.encodings)[static_cast<size_t>(layer)];
  const std::vector<Sequence>& sequences = call.memories.sequences();
  const std::vector<int64_t>& types = call.batch.token_types;
  const auto window = [&](const Sequence& s) {
    return parts_.same_length ? XLNet::same_length_window(s.q_start) : -1;
  };
  if (call.masked()) {
    for (size_t n = 0; n < sequences.size(); ++n) {
      const Sequence& s = sequences[n];
      const View own = rows_of(q, s.q_begin, s.q_len), result = rows_of(out, s.q_begin, s.q_len);
      TwoStreamOptions options;
      options.causal = parts_.causal;
      options.window_left = window(s);
      if (!call.input.perm_masks.empty())
        options.perm_mask = batch_of_one(call.input.perm_masks[n]);
      if (!call.key_segments.empty()) options.segments = view(&types[s.q_begin], {1, s.q_len});
      TwoStreamInputs in{.q_h = own,
                         .q_g = own,
                         .k = rows_of(kv.keys, s.k_begin, s.k_len),
                         .v = rows_of(kv.values, s.k_begin, s.k_len)};
      if (call.two_streams()) {
        const int64_t count = call.input.target_mappings[n].shape[0];
        options.target_mapping = batch_of_one(call.input.target_mappings[n]);
        in.q_g = rows_of(targets, call.targets[n], count);
        two_stream(in, encoding, options, result, rows_of(out_targets, call.targets[n], count));
      } else {
        // The content stream alone: its own positions stay open, whatever the mask says.
        Tensor unused(DType::f32, {1, own.shape[1], own.shape[2], own.shape[3]});
        two_stream(in, encoding, options, result, unused.view());
      }
    }
    return;
  }
  AttendOptions options;
  options.causal = parts_.causal;
  options.probabilities = call.wish.of(layer);
  const auto set_segments = [&](const Sequence& s) {
    if (call.key_segments.empty()) return;
    options.q_segments = view(&types[s.q_begin], {1, s.q_len});
    options.k_segments = view(&call.key_segments[s.k_begin], {1, s.k_len});
  };
  if (!parts_.same_length) {
    if (sequences.empty()) return;
    options.sequences = sequences;
    set_segments({.q_len = call.batch.tokens(), .k_len = call.memories.rows()});
    return attend(q, kv.keys, kv.values, encoding, options, out);
  }
  for (const Sequence& s : sequences) {  // each with the window of its own memory
    options.q_start = s.q_start;
    options.window_left = window(s);
    set_segments(s);
    attend(rows_of(q, s.q_begin, s.q_len), rows_of(kv.keys, s.k_begin, s.k_len),
           rows_of(kv.values, s.k_begin, s.k_len), encoding, options,
           rows_of(out, s.q_begin, s.q_len));
  }
}

ModelOutput XLNetModel::run(const ModelInput& input) const {
  Call call(input, parts_);
  const int64_t longest = call.memories.longest(), tokens = call.batch.tokens();
  const int64_t width = info().hidden_size, layers = info().layers;
  call.encodings = encodings_.get(std::max<int64_t>(longest - 1, 0),
                                  parts_.causal ? 0 : std::max<int64_t>(longest - 1, 0));
  ModelOutput out;
  call.wish = AttentionWish(input, out);
  const WorkspacePool<Workspace>::Borrowed borrowed(workspaces_);
  Workspace& work = *borrowed;
  View x = work.a.take(tokens, width), y = work.b.take(tokens, width);
  gather_rows(parts_.words, call.batch.ids, false, x);
  const bool two = call.two_streams();
  View g = work.targets_a.take(call.rows, width), next_g = work.targets_b.take(call.rows, width);
  for (int64_t row = 0; row < call.rows; ++row)
    std::copy_n(parts_.mask_emb.at<float>(), width, g.at<float>(row));

  Tensor result(DType::f32, {two ? call.rows : tokens, width});
  for (int64_t n = 0; n < layers; ++n) {
    const RecurrentLayer& layer = parts_.layers[static_cast<size_t>(n)];
    const bool last = n + 1 == layers;
    if (input.use_mems) call.memories.keep(n, x, parts_.memory, out.mems);
    const ConstView joined = call.memories.join(n, x, work.joined);
    const RecurrentLayer::KeysValues kv = layer.project_keys_values(joined, work.content);
    const View q = layer.project_queries(x, work.content);
    const View context = layer.context(tokens, work.content);
    View targets, context_g;
    if (two) {
      targets = layer.project_queries(g, work.query);
      context_g = layer.context(call.rows, work.query);
    }
    attention(n, call, q, targets, kv, layer.heads_of_context(context),
              two ? layer.heads_of_context(context_g) : View{});
    if (two) layer.finish(g, context_g, work.query, last ? result.view() : next_g);
    if (!two || !last) layer.finish(x, context, work.content, last ? result.view() : y);
    std::swap(x, y);
    std::swap(g, next_g);
  }

  // From here on, tokens are the targets, if there are any.
  Batch& batch = call.batch;
  if (two) {
    batch.firsts = call.targets;
    batch.offsets.assign(call.targets.begin(), call.targets.end());
    batch.offsets.push_back(call.rows);
  }
  if (parts_.summary_of_last)
    for (size_t n = 0; n < batch.firsts.size(); ++n) batch.firsts[n] = batch.offsets[n + 1] - 1;
  out.offsets = batch.offsets;
  if (parts_.decoder) {
    out.logits = Tensor(DType::f32, {result.view().shape[0], info().vocab_size});
    project(std::as_const(result).view(), parts_.decoder, parts_.decoder_bias, out.logits.view());
  } else {
    parts_.head.run(std::move(result), batch, out);
  }
  return out;
}

}  // namespace locant::inline v0
