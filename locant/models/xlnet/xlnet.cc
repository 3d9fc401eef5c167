#include "locant/models/xlnet/xlnet.h"

#include <array>
#include <string>
#include <utility>

#include "locant/encodings/xlnet/xlnet.h"
#include "locant/io/file.h"
#include "locant/models/sizes.h"
#include "locant/models/xlnet/xlnet_model.h"

namespace locant::inline v0 {
namespace {

constexpr HeadName kHeads[] = {{"base", "XLNetModel"},
                               {"causal_lm", "LMHeadModel"},
                               {"sequence_classification", "ForSequenceClassification"},
                               {"token_classification", "ForTokenClassification"},
                               {"question_answering", "ForQuestionAnsweringSimple"}};

// Sentence A, sentence B, [CLS], padding: what XLNet's tokenizer gives.
constexpr int64_t kSegments = 4;

XLNetConfig encoding_config(const Config& config, const ModelInfo& info) {
  if (info.hidden_size % info.heads != 0)
    config.reject("n_head", "is " + std::to_string(info.heads) +
                                ", which does not divide d_model " +
                                std::to_string(info.hidden_size));
  const int64_t dim = info.hidden_size / info.heads;
  if (config.integer_or("d_head", dim, 1, kMostConfigured) != dim)
    config.reject("d_head", "is " + std::to_string(config.integer("d_head")) +
                                ", but d_model / n_head is " + std::to_string(dim));
  if (config.flag_or("bi_data", false))
    config.reject("bi_data", "is true, but half of a batch read backwards is not known");
  const std::string attn_type =
      config.has("attn_type") ? config.choice("attn_type", {"bi", "uni"}) : "bi";
  return {.heads = info.heads,
          .head_dim = dim,
          .d_model = info.hidden_size,
          .clamp_len = config.integer_or("clamp_len", -1, -1, kMostConfigured),
          .attn_type = attn_type};
}

// q, k, v (D, H, d) as weights (H·d, D) of linear layers.
ConstView as_weight(const ConstView& w) {
  if (!w) return {};
  const int64_t shape[] = {w.shape[1] * w.shape[2], w.shape[0]};
  const int64_t strides[] = {1, w.shape[1] * w.shape[2]};
  return ConstView(w.data, w.dtype, shape, strides);
}

// o (D, H, d) as the weight (D, H·d).
ConstView as_output_weight(const ConstView& w) {
  if (!w) return {};
  const int64_t shape[] = {w.shape[0], w.shape[1] * w.shape[2]};
  return ConstView(w.data, w.dtype, shape);
}

void build_layer(const Config& config, const XLNetConfig& encoding, const Source& source,
                 XLNetParts& parts) {
  const ModelInfo& info = parts.info;
  const int64_t D = info.hidden_size, H = encoding.heads, d = encoding.head_dim;
  const double eps = config.number_or("layer_norm_eps", 1e-12, 0);
  const Source attention = source.scope("rel_attn.");
  const ConstView none;
  RecurrentLayer layer;
  layer.heads = H;
  layer.head_dim = d;
  const ConstView q = as_weight(attention.get("q", {D, H, d}));
  layer.queries = attention.linear(std::span(&q, 1), std::span(&none, 1));
  const std::array<ConstView, 2> kv = {as_weight(attention.get("k", {D, H, d})),
                                       as_weight(attention.get("v", {D, H, d}))};
  layer.keys_values = attention.linear(kv, std::array<ConstView, 2>{});
  const ConstView o = as_output_weight(attention.get("o", {D, H, d}));
  layer.output = attention.linear(std::span(&o, 1), std::span(&none, 1));
  layer.attention_norm = attention.norm("layer_norm.", D, eps);
  const Source ff = source.scope("ff.");
  layer.up = ff.linear("layer_1.", info.intermediate_size, D);
  layer.activation = activation_of(config, "ff_activation", "gelu");
  layer.down = ff.linear("layer_2.", D, info.intermediate_size);
  layer.norm = ff.norm("layer_norm.", D, eps);
  parts.layers.push_back(std::move(layer));

  const std::vector<std::pair<std::string, ConstView>> parameters = {
      {"r", attention.copy("r", {D, H, d})},
      {"r_w_bias", attention.copy("r_w_bias", {H, d})},
      {"r_r_bias", attention.copy("r_r_bias", {H, d})},
      {"r_s_bias", attention.copy("r_s_bias", {H, d})},
      {"seg_embed", attention.copy("seg_embed", {2, H, d})}};
  parts.encodings.push_back([encoding, parameters] {
    auto made = std::make_shared<XLNet>(encoding);
    for (const auto& [name, values] : parameters) made->set(name, values);
    return made;
  });
}

// sequence_summary: activation(summary(last token)), then logits_proj.
void build_summary(const Config& config, const Source& source, XLNetParts& parts) {
  const int64_t width = parts.info.hidden_size;
  const std::string type = config.text_or("summary_type", "last");
  if (type != "last" && type != "cls_index" && type != "first")
    config.reject("summary_type", "is " + shown(type) + ", but known are last, first, cls_index");
  if (!config.flag_or("summary_use_proj", true))
    config.reject("summary_use_proj", "is false, but only summaries with a projection are known");
  if (config.flag_or("summary_proj_to_labels", false))
    config.reject("summary_proj_to_labels", "is true, but only false is known");
  parts.summary_of_last = type != "first";
  parts.head.pooler = source.linear("sequence_summary.summary.", width, width);
  parts.head.pooler_activation = config.has("summary_activation")
                                     ? activation_of(config, "summary_activation", "tanh")
                                     : Activation::none;
  parts.head.classifier = label_classifier(config, source, "logits_proj.", parts.info);
  parts.info.per_token = false;
}

void build_head(const Config& config, const LoadOptions& options, const Source& source,
                XLNetParts& parts) {
  ModelInfo& info = parts.info;
  info.head = head_name(config, options, kHeads);
  const int64_t width = info.hidden_size;
  if (info.head == "causal_lm") {
    const bool tied = config.flag_or("tie_word_embeddings", true);
    parts.decoder =
        tied ? parts.words : source.table("lm_loss.weight", info.vocab_size, width);
    parts.decoder_bias = source.copy("lm_loss.bias", {info.vocab_size});
  } else if (info.head == "sequence_classification") {
    parts.head.kind = HeadKind::sequence_classification;
    build_summary(config, source, parts);
  } else if (info.head == "token_classification") {
    parts.head.kind = HeadKind::token_classification;
    parts.head.classifier = label_classifier(config, source, "classifier.", info);
  } else if (info.head == "question_answering") {
    parts.head.kind = HeadKind::question_answering;
    parts.head.classifier = source.linear("qa_outputs.", 2, width);
  }
}

}  // namespace

std::shared_ptr<const Model> build_xlnet(const Config& config, const LoadOptions& options,
                                         const Source& source) {
  XLNetParts parts;
  ModelInfo& info = parts.info;
  info = sizes_by(config, kRecurrentNames);
  info.token_types = kSegments;
  info.takes = {"mems", "perm_mask", "target_mapping"};
  const XLNetConfig encoding = encoding_config(config, info);
  static_cast<void>(XLNet(encoding));  // its checks
  info.encoding = "XLNet's relative positions and segments, in the scores";
  parts.farthest = farthest_distance(encoding.clamp_len);
  parts.causal = encoding.attn_type == "uni";
  parts.same_length = parts.causal && config.flag_or("same_length", false);
  parts.memory = {.mem_len = config.integer_or("mem_len", 0, 0, kMostConfigured),
                  .reuse_len = config.integer_or("reuse_len", 0, 0, kMostConfigured)};
  parts.words = source.table("word_embedding.weight", info.vocab_size, info.hidden_size);
  parts.mask_emb = source.copy("mask_emb", {1, 1, info.hidden_size});
  for (int64_t n = 0; n < info.layers; ++n)
    build_layer(config, encoding, source.scope("layer." + std::to_string(n) + "."), parts);
  build_head(config, options, source, parts);
  parts.storage = source.finish(info);
  return std::make_shared<XLNetModel>(std::move(parts));
}

}  // namespace locant::inline v0
