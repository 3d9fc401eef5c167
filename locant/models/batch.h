// The tokens of a call, all sequences one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "locant/models/model.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

// Where the position of a token comes from.
struct PositionRule {
  int64_t table_rows = 0;  // of the learned positions; 0: there are none, any length will do
  // RoBERTa: positions count tokens that are not padding, from padding + 1; padding stands at
  // `padding`. Without it, a token's position is its sequence's start plus its index.
  std::optional<int64_t> padding = {};
};

struct Batch {
  std::vector<int64_t> ids, token_types, positions;  // (T); positions empty if the rule has none
  std::vector<int64_t> offsets = {0};                // (N + 1)
  std::vector<int64_t> firsts;                       // (N) row of each sequence's first token
  std::vector<Sequence> sequences;                   // (N)

  int64_t tokens() const { return offsets.back(); }
};

// Whose attention a call wants to see, and where it goes.
class AttentionWish {
 public:
  AttentionWish() = default;
  AttentionWish(const ModelInput& input, ModelOutput& out)
      : layer_(input.attention_layer), attentions_(&out.attentions) {}

  // AttendOptions::probabilities of a layer.
  std::vector<Tensor>* of(int64_t layer) const { return layer == layer_ ? attentions_ : nullptr; }

 private:
  int64_t layer_ = -1;
  std::vector<Tensor>* attentions_ = nullptr;
};

// Fails by name and number on anything that is no batch of this model.
Batch make_batch(const ModelInput& input, const ModelInfo& info, const PositionRule& rule);

// The same of input.decoder_ids, without token types and positions.
Batch make_decoder_batch(const ModelInput& input, const ModelInfo& info);

}  // namespace locant::inline v0
