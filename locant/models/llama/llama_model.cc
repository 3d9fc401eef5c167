#include "locant/models/llama/llama_model.h"

#include <algorithm>
#include <utility>

#include "locant/layers/attend.h"
#include "locant/layers/embedding.h"
#include "locant/layers/heads.h"
#include "locant/models/sampling.h"

namespace locant::inline v0 {
namespace {

// Rows [begin, begin + count) of (1, H, rows, d).
View rows_of(const View& heads, int64_t begin, int64_t count) {
  View out = heads;
  out.data = heads.at<float>(0, 0, begin);
  out.shape[2] = count;
  return out;
}

// Every head's rows on their own.
void normalize_heads(const RmsNorm& norm, const View& heads) {
  for (int64_t head = 0; head < heads.shape[1]; ++head) {
    const int64_t shape[] = {heads.shape[2], heads.shape[3]};
    const int64_t strides[] = {heads.strides[2], 1};
    const View x(heads.at<float>(0, head), DType::f32, shape, strides);
    norm.run(x, x);
  }
}

// Absolute encodings are added to the input, x (T, D).
void add_positions(const Encoding& encoding, const std::vector<int64_t>& positions, const View& x) {
  if (encoding.embed_dim() == 0) return;
  const int64_t tokens = x.shape[0];
  const View rows = view(x.at<float>(), {1, tokens, x.shape[1]});
  encoding.embed(rows, {.positions = view(positions.data(), {1, tokens})}, rows);
}

}  // namespace

LlamaModel::LlamaModel(LlamaParts parts)
    : parts_(std::move(parts)),
      rope_(parts_.config.rope),
      none_({.heads = info().heads, .head_dim = parts_.config.head_dim}),
      by_length_(rope_.config().scaling == "dynamic" || rope_.config().scaling == "longrope") {}

void LlamaModel::Step::add(std::span<const int64_t> tokens, int64_t past, int64_t k_begin,
                           int64_t kept) {
  const auto first = static_cast<int64_t>(ids.size()), count = static_cast<int64_t>(tokens.size());
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  for (int64_t n = 0; n < count; ++n) positions.push_back(past + n);
  sequences.push_back({.batch = 0,
                       .q_begin = first,
                       .q_len = count,
                       .k_begin = k_begin,
                       .k_len = past + count,
                       .q_start = past});
  last_rows.push_back(first + count - 1);
  rotated.push_back(kept);
}

// Scores depend on differences of positions, so every sequence counts from 0 wherever it stands.
LlamaModel::Step LlamaModel::prompts(const ModelInput& input) const {
  const Batch batch = make_batch(input, info(), {});
  Step step;
  for (size_t n = 0; n < input.ids.size(); ++n)
    step.add(input.ids[n], 0, batch.sequences[n].k_begin, 0);
  return step;
}

// q and k are turned in place; k stays as it came where the cache keeps it so.
void LlamaModel::rotate(const Step& step, KvCache* cache, const View& qkv) const {
  const int64_t heads = info().heads, kv_heads = parts_.config.kv_heads;
  const bool unrotated = cache != nullptr && cache->keeps_unrotated();
  const View turning =
      heads_of(qkv, 0, unrotated ? heads : heads + kv_heads, parts_.config.head_dim);
  if (by_length_) {
    for (const Sequence& s : step.sequences) {
      const View own = rows_of(turning, s.q_begin, s.q_len);
      rope_.rotate(own, {.start = s.q_start, .length = s.k_len}, own);
    }
  } else {
    const auto count = static_cast<int64_t>(step.positions.size());
    rope_.rotate(turning, {.positions = view(step.positions.data(), {1, count})}, turning);
  }
}

// k and v go into the cache. One that keeps keys as they came turns them on their way to the keys
// that attention sees.
void LlamaModel::remember(const Step& step, int64_t layer, KvCache& cache, const View& qkv) const {
  const int64_t heads = info().heads, kv_heads = parts_.config.kv_heads;
  const int64_t dim = parts_.config.head_dim;
  const View k = heads_of(qkv, heads * dim, kv_heads, dim);
  const View v = heads_of(qkv, (heads + kv_heads) * dim, kv_heads, dim);
  const View keys = cache.keys(layer), values = cache.values(layer);
  const bool unrotated = cache.keeps_unrotated();
  const View kept = unrotated ? cache.unrotated_keys(layer) : keys;
  for (size_t n = 0; n < step.sequences.size(); ++n) {
    const Sequence& s = step.sequences[n];
    copy_rows(v, s.q_begin, s.q_len, values, s.k_begin + s.q_start);
    copy_rows(k, s.q_begin, s.q_len, kept, s.k_begin + s.q_start);
    if (!unrotated) continue;
    const int64_t from = step.rotated[n], count = s.k_len - from;
    rope_.rotate(rows_of(kept, s.k_begin + from, count), {.start = from, .length = s.k_len},
                 rows_of(keys, s.k_begin + from, count));
  }
}

void LlamaModel::attention(int64_t layer, const Step& step, KvCache* cache, const View& qkv,
                           const View& context) const {
  const LlamaLayer& weights = parts_.layers[layer];
  const int64_t heads = info().heads, kv_heads = parts_.config.kv_heads;
  const int64_t dim = parts_.config.head_dim;
  const View q = heads_of(qkv, 0, heads, dim);
  View k = heads_of(qkv, heads * dim, kv_heads, dim);
  View v = heads_of(qkv, (heads + kv_heads) * dim, kv_heads, dim);
  if (weights.query_norm.gamma) {
    normalize_heads(weights.query_norm, q);
    normalize_heads(weights.key_norm, k);
  }
  const bool turns = parts_.encodings.empty();
  if (turns) rotate(step, cache, qkv);
  if (cache != nullptr) {
    remember(step, layer, *cache, qkv);
    k = cache->keys(layer);
    v = cache->values(layer);
  }
  AttendOptions options;
  options.sequences = step.sequences;
  options.causal = true;
  if (weights.window > 0) options.window_left = weights.window - 1;
  options.probabilities = step.wish.of(layer);
  const Encoding& encoding = turns ? none_ : *parts_.encodings[layer];
  attend(q, k, v, encoding, options, heads_of(context, 0, heads, dim));
}

// What follows attention, row by row, in place of x: the output's projection and the gated layers.
void LlamaModel::feed_forward(const LlamaLayer& layer, const View& context, const View& x,
                              Workspace& work) const {
  const int64_t rows = x.shape[0], width = x.shape[1], inner = info().intermediate_size;
  const View y = work.y.take(rows, width), normed = work.normed.take(rows, width);
  const View gate = work.gate.take_inner(rows, inner);
  layer.output.run(context, y, {.residual = x});
  layer.mlp_norm.run(y, normed);
  layer.gate.run(normed, gate, {.activation = layer.activation, .factor = &layer.up});
  layer.down.run(gate, x, {.residual = y});
}

// -> normalised rows of the last layer: (T, D), or (sequences, D).
View LlamaModel::forward(const Step& step, Rows rows, KvCache* cache, Workspace& work) const {
  const LlamaConfig& config = parts_.config;
  const auto tokens = static_cast<int64_t>(step.ids.size());
  const auto sequences = static_cast<int64_t>(step.last_rows.size());
  const int64_t width = info().hidden_size, heads = info().heads;
  View x = work.x.take(tokens, width);
  View context = work.context.take(tokens, heads * config.head_dim);
  const View qkv = work.qkv.take(tokens, (heads + 2 * config.kv_heads) * config.head_dim);
  gather_rows(parts_.words, step.ids, false, x);
  if (!parts_.encodings.empty()) add_positions(*parts_.encodings.front(), step.positions, x);
  for (int64_t n = 0; n < info().layers; ++n) {
    const LlamaLayer& layer = parts_.layers[n];
    const View normed = work.normed.take(tokens, width);
    layer.attention_norm.run(x, normed);
    layer.qkv.run(normed, qkv);
    attention(n, step, cache, qkv, context);
    if (n + 1 == info().layers && rows == Rows::last_of_each_sequence) {
      const View last = work.last.take(sequences, width);
      const View last_context = work.last_context.take(sequences, context.shape[1]);
      gather_rows(x, step.last_rows, false, last);
      gather_rows(context, step.last_rows, false, last_context);
      x = last;
      context = last_context;
    }
    feed_forward(layer, context, x, work);
  }
  parts_.norm.run(x, x);
  return x;
}

ModelOutput LlamaModel::run(const ModelInput& input) const {
  Step step = prompts(input);
  ModelOutput out;
  step.wish = AttentionWish(input, out);
  out.offsets = {0};
  for (const int64_t row : step.last_rows) out.offsets.push_back(row + 1);
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  const View x =
      forward(step, info().per_token ? Rows::all : Rows::last_of_each_sequence, nullptr, *work);
  if (parts_.head) {
    out.logits = Tensor(DType::f32, {x.shape[0], parts_.head.outputs()});
    parts_.head.run(x, out.logits.view());
  } else {
    out.last_hidden_state = Tensor(DType::f32, {x.shape[0], x.shape[1]});
    std::copy_n(x.at<float>(), x.size(), out.last_hidden_state.view().at<float>());
  }
  return out;
}

std::vector<std::vector<int64_t>> LlamaModel::generate(const ModelInput& input,
                                                       const GenerateOptions& options) const {
  if (info().head != "causal_lm") return Model::generate(input, options);
  Step step = prompts(input);
  const auto count = static_cast<int64_t>(input.ids.size());
  Generation generation(options, parts_.stop, count, info().vocab_size);
  if (count == 0) return {};
  const LlamaConfig& config = parts_.config;
  KvCache cache(info().layers, count, config.kv_heads, config.head_dim,
                by_length_ && !options.exact);
  std::vector<std::vector<int64_t>> texts = input.ids;  // with the new tokens
  std::vector<int64_t> lengths;                         // 0: has ended
  for (const auto& text : texts) lengths.push_back(static_cast<int64_t>(text.size()));
  // The angles that each sequence's cached keys are turned by, if these change.
  std::vector<std::vector<double>> angles(static_cast<size_t>(count));
  const auto angles_change = [&](int64_t n) {
    if (!by_length_) return false;
    std::vector<double> now = rope_.frequencies(lengths[n]).theta;
    std::swap(now, angles[n]);
    return now != angles[n];
  };
  cache.reserve(lengths);
  for (int64_t n = 0; n < count; ++n) {
    step.sequences[n].k_begin = cache.begin(n);
    angles_change(n);
  }
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  while (true) {
    const View x = forward(step, Rows::last_of_each_sequence, &cache, *work);
    const View logits = (*work).logits.take(x.shape[0], parts_.head.outputs());
    parts_.head.run(x, logits);
    generation.step(logits);
    const std::vector<int64_t>& live = generation.live();
    if (live.empty()) return generation.take();
    std::vector<int64_t> next(lengths.size(), 0);
    for (const int64_t n : live) {
      texts[n].push_back(generation.last(n));
      next[n] = lengths[n] + 1;
    }
    lengths = std::move(next);
    cache.reserve(lengths);
    step = {};
    for (const int64_t n : live) {
      const bool change = angles_change(n);
      const int64_t past = change && options.exact ? 0 : lengths[n] - 1;
      step.add(std::span(texts[n]).subspan(static_cast<size_t>(past)), past, cache.begin(n),
               change ? 0 : past);
    }
  }
}

}  // namespace locant::inline v0
