#include "locant/models/t5/config.h"

#include <string>

#include "locant/core/error.h"
#include "locant/models/head.h"
#include "locant/models/sampling.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kSeq2Seq = "seq2seq_lm";

// "base" is the encoder alone.
constexpr HeadName kHeads[] = {{"base", "EncoderModel"},
                               {kSeq2Seq, "ForConditionalGeneration"},
                               {kSeq2Seq, "WithLMHeadModel"},
                               {"base", "Model"}};

// "relu", "gated-gelu", ...: "gated-gelu" has always meant the tanh form.
void read_feed_forward(const Config& config, T5ModelConfig& out) {
  constexpr const char* kKey = "feed_forward_proj";
  const std::string fallback = out.info.model_type == "t5" ? "relu" : "gated-gelu";
  std::string name = config.text_or(kKey, fallback);
  constexpr std::string_view kGated = "gated-";
  out.gated = name.starts_with(kGated);
  if (out.gated) name = name.substr(kGated.size());
  out.activation = activation_named(out.gated && name == "gelu" ? "gelu_new" : name, config, kKey);
}

// Original T5 scales; T5 v1.1 says tie_word_embeddings = false, which newer files call
// scale_decoder_outputs; mT5 never scales.
bool scales_output(const Config& config, const std::string& model_type) {
  if (model_type == "mt5") return false;
  const bool tied = config.flag_or("tie_word_embeddings", true);
  return model_type == "t5" ? config.flag_or("scale_decoder_outputs", tied) : tied;
}

}  // namespace

T5ModelConfig read_t5_config(const Config& config, const LoadOptions& options) {
  T5ModelConfig out;
  ModelInfo& info = out.info;
  info.model_type = config.text("model_type");
  info.vocab_size = config.integer("vocab_size", 1, kMostConfigured);
  info.hidden_size = config.integer("d_model", 1, kMostConfigured);
  info.layers = config.integer("num_layers", 1, kMostLayers);
  info.heads = config.integer("num_heads", 1, 1 << 16);
  info.intermediate_size = config.integer("d_ff", 1, kMostConfigured);
  out.head_dim = config.integer("d_kv", 1, kMostHeadDim);
  info.head = head_name(config, options, kHeads);
  if (info.head == kSeq2Seq)
    info.decoder_layers = config.integer_or("num_decoder_layers", info.layers, 1, kMostLayers);
  out.num_buckets = config.integer_or("relative_attention_num_buckets", 32, 1, 1 << 24);
  out.max_distance = config.integer_or("relative_attention_max_distance", 128, 1, 1 << 24);
  out.eps = config.number_or("layer_norm_epsilon", 1e-6, 0);
  read_feed_forward(config, out);
  out.table_per_layer = info.model_type == "umt5";
  check_distances(config, "relative_attention_max_distance", out.max_distance,
                  out.table_per_layer ? info.layers + info.decoder_layers : 2);
  out.scale_output = scales_output(config, info.model_type);
  const int64_t last = info.vocab_size - 1;
  out.start_token = config.integer_or("decoder_start_token_id",
                                      config.integer_or("pad_token_id", 0, 0, last), 0, last);
  out.stop = stop_tokens_of(config, info.vocab_size);
  info.encoding = "relative bias, " + std::to_string(out.num_buckets) + " log buckets up to " +
                  std::to_string(out.max_distance) +
                  (out.table_per_layer ? ", a table per layer" : ", one table for all layers");
  return out;
}

}  // namespace locant::inline v0
