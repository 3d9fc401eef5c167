// Models from checkpoint folders as Hugging Face writes them: config.json and model.safetensors.
//   const auto model = locant::load("deberta-v3-base/");
//   const ModelOutput out = model->run({.ids = {{1, 2054, 2}, {1, 7592, 2088, 2}}});
//   out.logits.view();        // (tokens or sequences, labels), float32
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/tensor.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// Sequences of any lengths: nothing is padded.
struct ModelInput {
  std::vector<std::vector<int64_t>> ids;
  std::vector<std::vector<int64_t>> token_types = {};  // as long as ids, or empty: zeros
  // Position of each sequence's first token; empty: zeros. Left-padded batches of models with
  // absolute positions count their padding.
  std::vector<int64_t> starts = {};
  // What the decoder of an encoder-decoder model has before it: as many sequences as ids, each of
  // any length. generate() begins with the config's start token if they are empty.
  std::vector<std::vector<int64_t>> decoder_ids = {};

  // Transformer-XL and XLNet: the memory of each sequence, (layers, M, D) float32 as an earlier run
  // gave it, or empty; and whether this run gives memories.
  std::vector<ConstView> mems = {};
  bool use_mems = false;

  // Whose attention to give with the results, from 0; -1: nobody's. Of models with an encoder and a
  // decoder, a layer of the encoder. Not with perm_masks and target_mappings.
  int64_t attention_layer = -1;

  // XLNet, for each sequence of L tokens, or empty. Where perm_masks (L, L) are not 0, query i must
  // not see key j. With target_mappings (T, L), float32, results have a row for each of T targets,
  // which do not see the tokens that they stand for (layers/two_stream.h).
  std::vector<ConstView> perm_masks = {}, target_mappings = {};
};

// By Hugging Face's names; what the model's head does not give is empty. Rows of tokens stand one
// after the other: those of sequence n are [offsets[n], offsets[n + 1]). With a decoder, tokens are
// those of decoder_ids.
struct ModelOutput {
  std::vector<int64_t> offsets;
  Tensor last_hidden_state;         // (T, D)
  Tensor pooler_output;             // (N, D)
  Tensor logits;                    // (N, labels), (T, labels) or (T, vocabulary)
  Tensor start_logits, end_logits;  // (T)
  std::vector<Tensor> mems;         // (layers, M, D) of each sequence: ModelInput::mems of what follows
  // Of each sequence of L tokens, (H, L, M + L): how much each of its tokens takes from each of its
  // memory and tokens, in ModelInput::attention_layer. Needs that much memory.
  std::vector<Tensor> attentions;
};

struct ModelInfo {
  std::string model_type;  // "bert", "roberta", "deberta", "deberta-v2", "mpnet", "t5", "xlnet", ...
  std::string head;        // "base", "masked_lm", ...: see LoadOptions
  std::string encoding;    // where positions enter, in words
  int64_t vocab_size = 0, hidden_size = 0, layers = 0, heads = 0, intermediate_size = 0;
  int64_t decoder_layers = 0;  // 0: there is no decoder beside the encoder
  int64_t token_types = 0;     // 0: the model has none, and ignores them
  int64_t max_length = 0;   // tokens of a sequence; 0: no limit
  int64_t parameters = 0;   // numbers that the checkpoint gave to this model
  int64_t bytes = 0;        // memory that holds them, packed, with tables made from them
  bool enhanced_mask_decoder = false;
  bool per_token = true;  // whether logits have a row per token, or per sequence
  std::vector<std::string> labels;
  // Of a sentence's embedding, as sentence-transformers calls it: "mean" unless the folder says
  // "cls", "max", "mean_sqrt_len_tokens", "weightedmean" or "lasttoken".
  std::vector<std::string> pooling = {"mean"};
  std::vector<std::string> takes;  // of "mems", "perm_mask", "target_mapping": inputs of few families
};

struct LoadOptions {
  // "base", "masked_lm", "sequence_classification", "token_classification", "question_answering";
  // of T5 "base", the encoder alone, and "seq2seq_lm"; empty: as config.json's architectures say,
  // else base.
  std::string head = "";
  // DeBERTa's masked language model: "enhanced", "plain" (the last layer's output, as Hugging Face
  // computes it), or "auto": enhanced if the checkpoint has what it needs.
  std::string mask_decoder = "auto";
};

inline constexpr int64_t kNeverStop = -1;  // no token's id

struct GenerateOptions {
  int64_t max_new_tokens = 32;
  // A sequence ends after one of these; empty: as the checkpoint says; {kNeverStop}: after none.
  std::vector<int64_t> stop = {};
  double temperature = 0;          // 0: greedy, the token of the largest logit
  double top_p = 1;                // draw from the likeliest tokens that hold this much probability
  uint64_t seed = 0;
  // Number of the call's first sequence: draws are a function of seed, sequence and step.
  int64_t first_sequence = 0;
  // Rotations that change with the length of a text (dynamic NTK beyond L0, LongRoPE at L0) change
  // what all its tokens are to each other. True: the text goes through the model anew, so that every
  // token is that of the full forward. False: only the cached keys are turned anew, which is the same
  // in a model of one layer, and much faster where every token changes the rotation.
  bool exact = true;
  // Called with each new token as it comes; a sequence for which it returns false ends there.
  std::function<bool(int64_t sequence, int64_t token)> on_token = {};
};

// Any number of threads may run one model.
class LOCANT_API Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Fails by name on ids that are no words of the vocabulary, empty or too long sequences. The bits
  // of a sequence's results depend neither on the others nor on the number of threads.
  virtual ModelOutput run(const ModelInput& input) const = 0;

  // The new tokens of each sequence, its stop token included. A sequence's tokens do not depend on
  // the others. Models that do not generate say so by name.
  virtual std::vector<std::vector<int64_t>> generate(const ModelInput& input,
                                                     const GenerateOptions& options) const;
};

// Fails with one message for all tensors that are missing or have another shape.
LOCANT_API std::shared_ptr<const Model> load(const std::string& dir,
                                             const LoadOptions& options = {});

// Each sequence's rows of last_hidden_state as one, (N, D), by info.pooling; with `normalize`, of
// length 1. Several poolings stand side by side.
LOCANT_API Tensor sentence_embeddings(const ModelOutput& output, const ModelInfo& info,
                                      bool normalize);

}  // namespace locant::inline v0
