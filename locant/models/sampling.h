// Which token comes next, and when a text ends: what all models that generate share.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "locant/core/view.h"
#include "locant/io/config.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

// temperature 0: the token of the largest logit. Else a draw from softmax(logits / temperature),
// cut to the likeliest tokens: the fewest that hold top_p of the probability. The draw is a
// function of the seed, the sequence's number and the step, so it does not depend on batch mates or
// threads.
int64_t sample(std::span<const float> logits, const GenerateOptions& options, int64_t sequence,
               int64_t step);

// eos_token_id, a number or a list, of generation_config.json beside config.json, else of
// config.json itself; empty if neither has one.
std::vector<int64_t> stop_tokens_of(const Config& config, int64_t vocab_size);

// The tokens of a generate() call as they come.
class Generation {
 public:
  // Fails by name on options that make no sense. `stop` is used if the options have none.
  Generation(const GenerateOptions& options, std::vector<int64_t> stop, int64_t sequences,
             int64_t vocab_size);

  // Sequences that have not ended, in order.
  const std::vector<int64_t>& live() const { return live_; }

  // Takes the next token of each live sequence from its row of logits (live, vocabulary), and lets
  // go of those that end with it.
  void step(const ConstView& logits);

  // The newest token of a sequence.
  int64_t last(int64_t sequence) const { return tokens_[sequence].back(); }

  std::vector<std::vector<int64_t>> take() { return std::move(tokens_); }

 private:
  bool ends(int64_t sequence, int64_t token) const;

  const GenerateOptions& options_;
  std::vector<int64_t> stop_, live_;
  std::vector<std::vector<int64_t>> tokens_;
};

}  // namespace locant::inline v0
