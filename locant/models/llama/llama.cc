#include "locant/models/llama/llama.h"

#include <array>
#include <string>
#include <utility>

#include "locant/models/head.h"
#include "locant/models/llama/llama_model.h"
#include "locant/models/sampling.h"

namespace locant::inline v0 {
namespace {

constexpr HeadName kHeads[] = {{"base", "Model"},
                               {"causal_lm", "ForCausalLM"},
                               {"sequence_classification", "ForSequenceClassification"}};

// Rows [begin, begin + count) of a matrix; of none, none.
ConstView rows(const ConstView& m, int64_t begin, int64_t count) {
  if (!m) return {};
  ConstView out = m;
  out.data = m.at<float>(begin);
  out.shape[0] = count;
  return out;
}

Linear build_qkv(const LlamaConfig& config, const Source& attention) {
  const int64_t width = config.info.hidden_size;
  const int64_t queries = config.info.heads * config.head_dim;
  const int64_t keys = config.kv_heads * config.head_dim;
  if (config.fused)
    return attention.linear("qkv_proj.", queries + 2 * keys, width, config.qkv_bias);
  std::array<ConstView, 3> weights, biases;
  constexpr std::array<const char*, 3> kParts = {"q_proj.", "k_proj.", "v_proj."};
  for (size_t n = 0; n < kParts.size(); ++n) {
    const Source part = attention.scope(kParts[n]);
    const int64_t outputs = n == 0 ? queries : keys;
    weights[n] = part.get("weight", {outputs, width});
    if (config.qkv_bias) biases[n] = part.get("bias", {outputs});
  }
  return attention.linear(weights, biases);
}

LlamaLayer build_layer(const LlamaConfig& config, int64_t index, const Source& source) {
  const int64_t width = config.info.hidden_size, inner = config.info.intermediate_size;
  LlamaLayer layer;
  layer.window = config.windows[index];
  layer.attention_norm = source.rms_norm("input_layernorm.", width, config.norm_eps);
  const Source attention = source.scope("self_attn.");
  layer.qkv = build_qkv(config, attention);
  if (config.head_norms) {
    layer.query_norm = attention.rms_norm("q_norm.", config.head_dim, config.norm_eps);
    layer.key_norm = attention.rms_norm("k_norm.", config.head_dim, config.norm_eps);
  }
  layer.output =
      attention.linear("o_proj.", width, config.info.heads * config.head_dim, config.output_bias);
  layer.mlp_norm = source.rms_norm("post_attention_layernorm.", width, config.norm_eps);
  const Source mlp = source.scope("mlp.");
  if (config.fused) {
    const ConstView both = mlp.get("gate_up_proj.weight", {2 * inner, width});
    const ConstView gate = rows(both, 0, inner), up = rows(both, inner, inner), none;
    layer.gate = mlp.linear(std::span(&gate, 1), std::span(&none, 1));
    layer.up = mlp.linear(std::span(&up, 1), std::span(&none, 1));
  } else {
    layer.gate = mlp.linear("gate_proj.", inner, width, config.mlp_bias);
    layer.up = mlp.linear("up_proj.", inner, width, config.mlp_bias);
  }
  layer.activation = config.activation;
  layer.down = mlp.linear("down_proj.", width, inner, config.mlp_bias);
  return layer;
}

}  // namespace

std::shared_ptr<const Model> build_llama(const Config& config, const LoadOptions& options,
                                         const Source& source) {
  LlamaParts parts;
  parts.config = llama_config(config);
  ModelInfo& info = parts.config.info;
  info.head = head_name(config, options, kHeads);
  parts.words = source.table("embed_tokens.weight", info.vocab_size, info.hidden_size);
  for (int64_t n = 0; n < info.layers; ++n)
    parts.layers.push_back(
        build_layer(parts.config, n, source.scope("layers." + std::to_string(n) + ".")));
  if (!parts.config.position.name.empty())
    parts.encodings = build_encodings(parts.config.position, info.layers, source);
  parts.norm = source.rms_norm("norm.", info.hidden_size, parts.config.norm_eps);
  if (info.head == "causal_lm") {
    parts.head = source.linear(parts.config.tied ? "embed_tokens." : "lm_head.", info.vocab_size,
                               info.hidden_size, false);
    parts.stop = stop_tokens_of(config, info.vocab_size);
  } else if (info.head == "sequence_classification") {
    info.per_token = false;
    parts.head = label_classifier(config, source, "score.", info, false);
  }
  parts.storage = source.finish(info);
  return std::make_shared<LlamaModel>(std::move(parts));
}

}  // namespace locant::inline v0
