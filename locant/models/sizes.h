// Sizes that all families write into config.json, read and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "locant/io/config.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

inline constexpr int64_t kMostConfigured = int64_t{1} << 31;

// What a model allocates by its config alone, before a weight is read, stays small: so many layers, and
// heads so wide.
inline constexpr int64_t kMostLayers = 1 << 12;
inline constexpr int64_t kMostHeadDim = 1 << 16;
inline constexpr int64_t kMostDistances = 1 << 22;

// Encodings keep a number for each distance that they tell apart, in every layer: `distances` of
// `layers` must be at most `most`. `key` is to blame, `what` it does to the distances.
inline void check_distances(const Config& config, std::string_view key, int64_t distances,
                            int64_t layers, int64_t most = kMostDistances,
                            const std::string& what = "is") {
  if (distances > most / layers)
    config.reject(key, what + " " + std::to_string(distances) + " in each of " +
                           std::to_string(layers) + " layers: more than " + std::to_string(most) +
                           " in all");
}

// Rows of a projection to all heads.
inline void check_head_dim(const Config& config, const char* key, int64_t heads, int64_t head_dim) {
  if (head_dim > kMostHeadDim || heads > kMostConfigured / head_dim)
    config.reject(key, "is " + std::to_string(head_dim) + " for each of " + std::to_string(heads) +
                           " heads, too much: at most " + std::to_string(kMostHeadDim) +
                           ", and 2^31 in all");
}

// Whether config.json may say how wide a head is; else it is hidden_size / num_attention_heads.
enum class HeadDim : uint8_t { divides_hidden_size, may_be_given };

// Where a family's config.json has its sizes.
struct SizeNames {
  const char *hidden_size = "hidden_size", *layers = "num_hidden_layers",
             *heads = "num_attention_heads", *intermediate_size = "intermediate_size";
};

// Transformer-XL and XLNet.
inline constexpr SizeNames kRecurrentNames = {"d_model", "n_layer", "n_head", "d_inner"};

// model_type, vocab_size and what `names` says.
inline ModelInfo sizes_by(const Config& config, const SizeNames& names) {
  ModelInfo info;
  info.model_type = config.text("model_type");
  info.vocab_size = config.integer("vocab_size", 1, kMostConfigured);
  info.hidden_size = config.integer(names.hidden_size, 1, kMostConfigured);
  info.layers = config.integer(names.layers, 1, kMostLayers);
  info.heads = config.integer(names.heads, 1, kMostConfigured);
  info.intermediate_size = config.integer(names.intermediate_size, 1, kMostConfigured);
  return info;
}

// The same by the usual names.
inline ModelInfo sizes_of(const Config& config, HeadDim head_dim = HeadDim::divides_hidden_size) {
  ModelInfo info = sizes_by(config, {});
  const bool given = head_dim == HeadDim::may_be_given && config.has("head_dim");
  if (!given && info.hidden_size % info.heads != 0)
    config.reject("num_attention_heads",
                  "is " + std::to_string(info.heads) + ", which does not divide hidden_size " +
                      std::to_string(info.hidden_size));
  return info;
}

}  // namespace locant::inline v0
