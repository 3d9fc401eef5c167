// Sizes that all families write into config.json, read and checked.
#pragma once

#include <cstdint>
#include <string>

#include "locant/io/config.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

inline constexpr int64_t kMostConfigured = int64_t{1} << 31;

// Whether config.json may say how wide a head is; else it is hidden_size / num_attention_heads.
enum class HeadDim : uint8_t { divides_hidden_size, may_be_given };

// model_type, vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
// and type_vocab_size.
inline ModelInfo sizes_of(const Config& config, HeadDim head_dim = HeadDim::divides_hidden_size) {
  ModelInfo info;
  info.model_type = config.text("model_type");
  info.vocab_size = config.integer("vocab_size", 1, kMostConfigured);
  info.hidden_size = config.integer("hidden_size", 1, kMostConfigured);
  info.layers = config.integer("num_hidden_layers", 1, 1 << 16);
  info.heads = config.integer("num_attention_heads", 1, kMostConfigured);
  info.intermediate_size = config.integer("intermediate_size", 1, kMostConfigured);
  info.token_types = config.integer_or("type_vocab_size", 0, 0, kMostConfigured);
  const bool given = head_dim == HeadDim::may_be_given && config.has("head_dim");
  if (!given && info.hidden_size % info.heads != 0)
    config.reject("num_attention_heads",
                  "is " + std::to_string(info.heads) + ", which does not divide hidden_size " +
                      std::to_string(info.hidden_size));
  return info;
}

// The same by Transformer-XL's and XLNet's names: d_model, n_layer, n_head, d_inner.
inline ModelInfo recurrent_sizes_of(const Config& config) {
  ModelInfo info;
  info.model_type = config.text("model_type");
  info.vocab_size = config.integer("vocab_size", 1, kMostConfigured);
  info.hidden_size = config.integer("d_model", 1, kMostConfigured);
  info.layers = config.integer("n_layer", 1, 1 << 16);
  info.heads = config.integer("n_head", 1, kMostConfigured);
  info.intermediate_size = config.integer("d_inner", 1, kMostConfigured);
  return info;
}

}  // namespace locant::inline v0
