// What follows the last layer: pooling, classification, question answering, masked language model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locant/io/config.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "locant/models/batch.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

enum class HeadKind : uint8_t {
  base,
  masked_lm,
  sequence_classification,
  token_classification,
  question_answering
};

// Plain data: which layers there are follows from the kind.
struct Head {
  HeadKind kind = HeadKind::base;

  // base (may be missing) and sequence_classification: activation(pooler(first token)).
  Linear pooler;
  Activation pooler_activation = Activation::tanh;

  // On the pooled row, or on every token; question answering: two columns, start and end.
  Linear classifier;

  // masked_lm: logits = norm(activation(transform(h)))·decoderᵀ + decoder_bias
  Linear transform;
  Activation transform_activation = Activation::gelu;
  LayerNorm transform_norm;
  ConstView decoder;       // (vocabulary, E), often the word embeddings
  ConstView decoder_bias;  // (vocabulary)

  // h (T, D) is the last layer's output; it moves into the result of a base model.
  void run(Tensor hidden, const Batch& batch, ModelOutput& out) const;
};

// "masked_lm" and the like.
const char* name_of(HeadKind kind);

// A head by its name, and by what the class names of Hugging Face end with.
struct HeadName {
  const char* name;
  const char* ending;
};

// Name of the head that the options ask for, or the architectures of config.json, or the first.
std::string head_name(const Config& config, const LoadOptions& options,
                      std::span<const HeadName> known);

// The same for encoders.
HeadKind head_of(const Config& config, const LoadOptions& options);

// A linear layer (labels, D) from prefix + "weight" and "bias". The labels go into `info`: names of
// id2label in order of their numbers, else LABEL_0, LABEL_1, ...
Linear label_classifier(const Config& config, const Source& source, std::string_view prefix,
                        ModelInfo& info, bool bias = true);

// The activation that config.json names under `key`.
Activation activation_of(const Config& config, const char* key, const std::string& fallback);

// The activation `name`; the error blames `key`.
Activation activation_named(const std::string& name, const Config& config, const char* key);

}  // namespace locant::inline v0
