#include "locant/models/llama/config.h"

#include <algorithm>
#include <string>

#include "locant/io/file.h"
#include "locant/models/head.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

// Llama itself, or its layers with another position encoding.
bool is_plain(const std::string& type) { return type == "llama" || type == "locant"; }

// sliding_window of every layer, 0 where there is none.
std::vector<int64_t> windows_of(const Config& config, const ModelInfo& info) {
  std::vector<int64_t> windows(static_cast<size_t>(info.layers), 0);
  const std::string& type = info.model_type;
  const bool by_layer = type == "qwen2" || type == "qwen3";
  if (is_plain(type) || (by_layer && !config.flag_or("use_sliding_window", false))) return windows;
  const int64_t window = config.integer_or("sliding_window", 0, 0, kMostConfigured);
  if (!by_layer) {
    std::fill(windows.begin(), windows.end(), window);
    return windows;
  }
  if (!config.has("layer_types")) {
    const int64_t first = config.integer_or("max_window_layers", 28, 0, kMostConfigured);
    for (int64_t n = first; n < info.layers; ++n) windows[n] = window;
    return windows;
  }
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.size() != windows.size())
    config.reject("layer_types", "has " + std::to_string(types.size()) +
                                     " entries, but num_hidden_layers is " +
                                     std::to_string(info.layers));
  for (size_t n = 0; n < types.size(); ++n) {
    if (types[n] != "full_attention" && types[n] != "sliding_attention")
      config.reject("layer_types",
                    "holds " + shown(types[n]) + ", but known are full_attention, sliding_attention");
    if (types[n] == "sliding_attention") windows[n] = window;
  }
  return windows;
}

}  // namespace

LlamaConfig llama_config(const Config& config) {
  LlamaConfig out;
  ModelInfo& info = out.info;
  info = sizes_of(config, HeadDim::may_be_given);
  const std::string& type = info.model_type;
  out.kv_heads = config.integer_or("num_key_value_heads", info.heads, 1, kMostConfigured);
  if (info.heads % out.kv_heads != 0)
    config.reject("num_key_value_heads", "is " + std::to_string(out.kv_heads) +
                                             ", which does not divide the " +
                                             std::to_string(info.heads) + " heads");
  const int64_t usual = type == "qwen3" ? 128 : info.hidden_size / info.heads;
  out.head_dim = config.integer_or("head_dim", usual, 1, kMostConfigured);
  check_head_dim(config, "head_dim", info.heads, out.head_dim);
  out.norm_eps = config.number_or("rms_norm_eps", type == "phi3" ? 1e-5 : 1e-6, 0);
  out.activation = activation_of(config, "hidden_act", "silu");
  const bool flagged = is_plain(type) || type == "qwen3";
  const bool bias = flagged && config.flag_or("attention_bias", false);
  out.qkv_bias = bias || type == "qwen2";
  out.output_bias = bias;
  out.mlp_bias = is_plain(type) && config.flag_or("mlp_bias", false);
  out.fused = type == "phi3";
  out.head_norms = type == "qwen3";
  out.tied = config.flag_or("tie_word_embeddings", false);
  out.windows = windows_of(config, info);
  if (type == "locant") {
    out.position = position_encoding_of(config, info.heads, out.head_dim);
    info.encoding = out.position.name + ", as `locant list` has it";
    return out;
  }
  out.rope = rope_config(config, info.heads, out.head_dim);
  info.encoding = "RoPE, which rotates q and k";
  if (out.rope.scaling != "none") info.encoding += "; scaling " + out.rope.scaling;
  return out;
}

}  // namespace locant::inline v0
