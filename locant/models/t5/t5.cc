#include "locant/models/t5/t5.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "locant/encodings/none/none.h"
#include "locant/encodings/t5/t5.h"
#include "locant/models/t5/config.h"
#include "locant/models/t5/model.h"

namespace locant::inline v0 {
namespace {

// The projections `names` of an attention side by side.
template <size_t kCount>
Linear build_projections(const T5ModelConfig& c, const Source& attention,
                         const std::array<const char*, kCount>& names) {
  std::array<ConstView, kCount> weights;
  for (size_t n = 0; n < kCount; ++n)
    weights[n] =
        attention.scope(names[n]).get("weight", {c.info.heads * c.head_dim, c.info.hidden_size});
  return attention.linear(weights, {});
}

Linear build_output(const T5ModelConfig& c, const Source& attention) {
  return attention.linear("o.", c.info.hidden_size, c.info.heads * c.head_dim, false);
}

std::shared_ptr<const Encoding> build_bias(const T5ModelConfig& c, const Source& attention,
                                           bool bidirectional) {
  auto encoding = std::make_shared<T5>(T5Config{.heads = c.info.heads,
                                                .head_dim = c.head_dim,
                                                .num_buckets = c.num_buckets,
                                                .max_distance = c.max_distance,
                                                .bidirectional = bidirectional});
  const ConstView table =
      attention.copy("relative_attention_bias.weight", {c.num_buckets, c.info.heads});
  if (table) encoding->set("bias", table);
  return encoding;
}

// `shared` is layer 0's encoding, which this may fill.
T5SelfAttention build_self(const T5ModelConfig& c, const Source& source, bool bidirectional,
                           std::shared_ptr<const Encoding>& shared) {
  const Source attention = source.scope("SelfAttention.");
  if (!shared || c.table_per_layer) shared = build_bias(c, attention, bidirectional);
  return {.heads = c.info.heads,
          .head_dim = c.head_dim,
          .norm = source.rms_norm("layer_norm.", c.info.hidden_size, c.eps),
          .qkv = build_projections<3>(c, attention, {"q.", "k.", "v."}),
          .encoding = shared,
          .output = build_output(c, attention)};
}

T5CrossAttention build_cross(const T5ModelConfig& c, const Source& source) {
  const Source attention = source.scope("EncDecAttention.");
  return {.heads = c.info.heads,
          .head_dim = c.head_dim,
          .norm = source.rms_norm("layer_norm.", c.info.hidden_size, c.eps),
          .query = build_projections<1>(c, attention, {"q."}),
          .key_value = build_projections<2>(c, attention, {"k.", "v."}),
          .encoding = std::make_shared<const None>(
              NoneConfig{.heads = c.info.heads, .head_dim = c.head_dim}),
          .output = build_output(c, attention)};
}

T5FeedForward build_feed(const T5ModelConfig& c, const Source& source) {
  const int64_t width = c.info.hidden_size, inner = c.info.intermediate_size;
  const Source dense = source.scope("DenseReluDense.");
  T5FeedForward feed;
  feed.norm = source.rms_norm("layer_norm.", width, c.eps);
  feed.up = dense.linear(c.gated ? "wi_0." : "wi.", inner, width, false);
  if (c.gated) feed.gate = dense.linear("wi_1.", inner, width, false);
  feed.activation = c.activation;
  feed.down = dense.linear("wo.", width, inner, false);
  return feed;
}

// norm(x)·D^-0.5 is a norm with a smaller gamma.
void scale_norm(const T5ModelConfig& c, const Source& source, RmsNorm& norm) {
  if (source.dry()) return;
  const View gamma = source.allocate({c.info.hidden_size});
  const float factor = 1.0f / std::sqrt(static_cast<float>(c.info.hidden_size));
  std::transform(norm.gamma.at<float>(), norm.gamma.at<float>() + c.info.hidden_size,
                 gamma.at<float>(), [&](float g) { return g * factor; });
  norm.gamma = gamma;
}

void build_decoder(const Source& source, T5Parts& parts) {
  const T5ModelConfig& c = parts.config;
  const int64_t width = c.info.hidden_size, words = c.info.vocab_size;
  const Source decoder = source.scope("decoder.");
  std::shared_ptr<const Encoding> bias;
  for (int64_t n = 0; n < c.info.decoder_layers; ++n) {
    const Source layer = decoder.scope("block." + std::to_string(n) + ".layer.");
    parts.decoder.push_back({.self = build_self(c, layer.scope("0."), false, bias),
                             .cross = build_cross(c, layer.scope("1.")),
                             .feed = build_feed(c, layer.scope("2."))});
  }
  parts.decoder_norm = decoder.rms_norm("final_layer_norm.", width, c.eps);
  if (c.scale_output) scale_norm(c, source, parts.decoder_norm);
  // Tied weights are stored once; what is stored apart is not tied, whatever the config says.
  const ConstView weight =
      source.has("lm_head.weight") ? source.get("lm_head.weight", {words, width}) : parts.words;
  parts.lm_head = source.linear(std::span(&weight, 1), {});
}

}  // namespace

std::shared_ptr<const Model> build_t5(const Config& config, const LoadOptions& options,
                                      const Source& source) {
  T5Parts parts;
  parts.config = read_t5_config(config, options);
  const T5ModelConfig& c = parts.config;
  const bool shared = source.has("shared.weight") || !source.has("encoder.embed_tokens.weight");
  parts.words = source.table(shared ? "shared.weight" : "encoder.embed_tokens.weight",
                             c.info.vocab_size, c.info.hidden_size);
  const Source encoder = source.scope("encoder.");
  std::shared_ptr<const Encoding> bias;
  for (int64_t n = 0; n < c.info.layers; ++n) {
    const Source layer = encoder.scope("block." + std::to_string(n) + ".layer.");
    parts.encoder.push_back({.self = build_self(c, layer.scope("0."), true, bias),
                             .feed = build_feed(c, layer.scope("1."))});
  }
  parts.encoder_norm = encoder.rms_norm("final_layer_norm.", c.info.hidden_size, c.eps);
  if (c.info.decoder_layers > 0) build_decoder(source, parts);
  parts.storage = source.finish(parts.config.info);
  return std::make_shared<T5Model>(std::move(parts));
}

}  // namespace locant::inline v0
