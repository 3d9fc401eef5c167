// What a model's head says about a text: as JSON, and for readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/texts.h"
#include "cli/words.h"
#include "locant/core/tensor.h"
#include "locant/models/model.h"

namespace locant::cli {

// One sequence that a model is asked about. Of plain token ids nothing but these is known.
struct Query {
  Passage passage;
  Encoded encoded;
  bool from_text = false;
};

// How logits of several labels become probabilities, by the config's problem_type.
enum class LabelKind {
  one_of,      // softmax
  any_of,      // a sigmoid for each
  regression,  // none: the logit is the answer
};

struct AnswerOptions {
  LabelKind labels = LabelKind::one_of;
  int64_t top_k = 5;        // guesses for a masked word, labels of a text
  int64_t max_answer = 15;  // tokens of an answer to a question
};

// A model's results for a batch; embeddings (N, D) for the head "base".
struct Results {
  ModelOutput out;
  Tensor embeddings;
};

// {"tokens": how many, ...} and, by the head:
//   base                     embedding
//   sequence_classification  label, probability, labels: [{label, logit, probability}] best first;
//                            of regressions value, or values: [{label, value}]
//   token_classification     labels: [{token, label, probability, bytes}]
//   question_answering       answer, probability, no_answer, first and last token, bytes
//   masked_lm                masks: [{position, guesses: [{token, id, probability}]}]
//   causal_lm                next: [{token, id, probability}], likeliest first
// and of plain ids, for both: best, the likeliest id at each token.
nlohmann::ordered_json answer_of(const Results& results, size_t n, const Query& query,
                                 const ModelInfo& info, const Words& words,
                                 const AnswerOptions& options);

// The same in a line or a few.
std::string readable(const nlohmann::ordered_json& answer, const Query& query, size_t number,
                     const AnswerOptions& options);

}  // namespace locant::cli
