#include "locant/models/t5/model.h"

#include <algorithm>
#include <utility>

#include "locant/core/error.h"
#include "locant/layers/embedding.h"
#include "locant/models/sampling.h"

namespace locant::inline v0 {
namespace {

// Two matrices that a chain of layers goes to and fro between.
struct Pair {
  View now, next;
  void turn() { std::swap(now, next); }
};

}  // namespace

T5Model::T5Model(T5Parts parts) : parts_(std::move(parts)) {}

ModelOutput T5Model::run(const ModelInput& input) const {
  const Batch batch = make_batch(input, info(), {});
  ModelOutput out;
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  if (parts_.decoder.empty()) {
    out.offsets = batch.offsets;
    out.last_hidden_state = encode(batch, AttentionWish(input, out), *work);
    return out;
  }
  require(!input.decoder_ids.empty() || input.ids.empty(), "model", "a ", info().model_type,
          " model with head ", info().head,
          " needs decoder_ids; load it with head base for the encoder alone");
  const Batch given = make_decoder_batch(input, info());
  out.offsets = given.offsets;
  std::vector<Next> next;
  for (size_t n = 0; n < input.decoder_ids.size(); ++n)
    next.push_back({static_cast<int64_t>(n), input.decoder_ids[n]});
  Memory memory = remember(batch, AttentionWish(input, out), *work);
  out.logits = logits(decode(next, memory, *work).view());
  return out;
}

std::vector<std::vector<int64_t>> T5Model::generate(const ModelInput& input,
                                                    const GenerateOptions& options) const {
  if (parts_.decoder.empty()) return Model::generate(input, options);
  const Batch batch = make_batch(input, info(), {});
  if (!input.decoder_ids.empty()) static_cast<void>(make_decoder_batch(input, info()));
  const auto count = static_cast<int64_t>(input.ids.size());
  Generation generation(options, parts_.config.stop, count, info().vocab_size);
  std::vector<Next> next;
  for (int64_t n = 0; n < count; ++n)
    next.push_back({n, input.decoder_ids.empty() ? std::span(&parts_.config.start_token, 1)
                                                 : std::span(input.decoder_ids[n])});
  const WorkspacePool<Workspace>::Borrowed work(workspaces_);
  Memory memory = remember(batch, {}, *work);
  std::vector<int64_t> tokens;  // the newest of each sequence that goes on
  while (!next.empty()) {
    const Tensor hidden = decode(next, memory, *work);
    std::vector<int64_t> lasts;  // the row of each sequence's last token
    for (const Next& step : next)
      lasts.push_back((lasts.empty() ? -1 : lasts.back()) + static_cast<int64_t>(step.ids.size()));
    Tensor rows(DType::f32, {static_cast<int64_t>(lasts.size()), info().hidden_size});
    gather_rows(hidden.view(), lasts, false, rows.view());
    const Tensor scores = logits(rows.view());
    generation.step(scores.view());
    tokens.clear();
    for (const int64_t n : generation.live()) tokens.push_back(generation.last(n));
    next.clear();
    for (size_t n = 0; n < tokens.size(); ++n)
      next.push_back({generation.live()[n], std::span(&tokens[n], 1)});
  }
  return generation.take();
}

// -> (T, D), after the last norm
Tensor T5Model::encode(const Batch& batch, AttentionWish wish, Workspace& work) const {
  const int64_t tokens = batch.tokens(), width = info().hidden_size;
  Pair x{work.a.take(tokens, width), work.b.take(tokens, width)};
  gather_rows(parts_.words, batch.ids, false, x.now);
  for (size_t n = 0; n < parts_.encoder.size(); ++n) {
    const T5EncoderLayer& layer = parts_.encoder[n];
    layer.self.run(x.now, batch.sequences, work.scratch, wish.of(static_cast<int64_t>(n)), x.next);
    x.turn();
    layer.feed.run(x.now, work.scratch, x.next);
    x.turn();
  }
  Tensor out(DType::f32, {tokens, width});
  parts_.encoder_norm.run(x.now, out.view());
  return out;
}

// The encoder's rows as the decoder's layers want them, and no tokens yet.
T5Model::Memory T5Model::remember(const Batch& batch, AttentionWish wish, Workspace& work) const {
  const Tensor encoded = encode(batch, wish, work);
  const auto count = static_cast<int64_t>(batch.sequences.size());
  Memory memory{
      .self = KvCache(info().decoder_layers, count, info().heads, parts_.config.head_dim, false),
      .lengths = std::vector<int64_t>(batch.sequences.size()),
      .cross = {},
      .encoded = batch.sequences};
  for (const T5DecoderLayer& layer : parts_.decoder) {
    const Linear& project = layer.cross.key_value;
    memory.cross.emplace_back(DType::f32,
                              std::initializer_list<int64_t>{batch.tokens(), project.outputs()});
    project.run(encoded.view(), memory.cross.back().view());
  }
  return memory;
}

// -> (tokens, D), after the last norm; the tokens are part of the memory then.
Tensor T5Model::decode(std::span<const Next> next, Memory& memory, Workspace& work) const {
  const int64_t width = info().hidden_size;
  if (next.empty()) return Tensor(DType::f32, {0, width});
  // Sequences that have no next token have ended.
  std::vector<int64_t> lengths(memory.lengths.size());
  for (const auto& [n, tokens] : next)
    lengths[n] = memory.lengths[n] + static_cast<int64_t>(tokens.size());
  memory.self.reserve(lengths);
  std::vector<int64_t> ids;
  std::vector<Sequence> self, cross;
  for (const auto& [n, tokens] : next) {
    const auto begin = static_cast<int64_t>(ids.size()),
               count = static_cast<int64_t>(tokens.size());
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    self.push_back({.q_begin = begin,
                    .q_len = count,
                    .k_begin = memory.self.begin(n),
                    .k_len = lengths[n],
                    .q_start = memory.lengths[n]});
    cross.push_back({.q_begin = begin,
                     .q_len = count,
                     .k_begin = memory.encoded[n].k_begin,
                     .k_len = memory.encoded[n].k_len});
  }
  memory.lengths = std::move(lengths);
  const auto count = static_cast<int64_t>(ids.size());
  Pair x{work.a.take(count, width), work.b.take(count, width)};
  gather_rows(parts_.words, ids, false, x.now);
  for (size_t n = 0; n < parts_.decoder.size(); ++n) {
    const T5DecoderLayer& layer = parts_.decoder[n];
    const auto number = static_cast<int64_t>(n);
    layer.self.run_cached(x.now, self, memory.self.keys(number), memory.self.values(number),
                          work.scratch, x.next);
    x.turn();
    layer.cross.run(x.now, cross, memory.cross[n].view(), work.scratch, x.next);
    x.turn();
    layer.feed.run(x.now, work.scratch, x.next);
    x.turn();
  }
  Tensor out(DType::f32, {count, width});
  parts_.decoder_norm.run(x.now, out.view());
  return out;
}

Tensor T5Model::logits(const ConstView& hidden) const {
  Tensor out(DType::f32, {hidden.shape[0], parts_.lm_head.outputs()});
  parts_.lm_head.run(hidden, out.view());
  return out;
}

}  // namespace locant::inline v0
