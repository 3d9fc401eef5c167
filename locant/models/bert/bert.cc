#include "locant/models/bert/bert.h"

#include <array>
#include <string>

#include "locant/encodings/none/none.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

constexpr double kDefaultEps = 1e-12;

// What differs between the two families.
struct Family {
  bool roberta = false;
  int64_t padding = 1;  // RoBERTa counts positions from padding + 1
};

EncoderLayer build_layer(const Config& config, const ModelInfo& info, const Source& source,
                         const std::shared_ptr<const Encoding>& encoding) {
  const double eps = config.number_or("layer_norm_eps", kDefaultEps, 0);
  const int64_t width = info.hidden_size;
  EncoderLayer layer;
  layer.heads = info.heads;
  layer.head_dim = width / info.heads;
  layer.encoding = encoding;
  const Source self = source.scope("attention.self.");
  std::array<ConstView, 3> weights, biases;
  constexpr std::array<const char*, 3> kParts = {"query.", "key.", "value."};
  for (size_t n = 0; n < kParts.size(); ++n) {
    const Source part = self.scope(kParts[n]);
    weights[n] = part.get("weight", {width, width});
    biases[n] = part.get("bias", {width});
  }
  layer.qkv = source.linear(weights, biases);
  layer.output = source.linear("attention.output.dense.", width, width);
  layer.output_norm = source.norm("attention.output.LayerNorm.", width, eps);
  layer.up = source.linear("intermediate.dense.", info.intermediate_size, width);
  layer.activation = activation_of(config, "hidden_act", "gelu");
  layer.down = source.linear("output.dense.", width, info.intermediate_size);
  layer.norm = source.norm("output.LayerNorm.", width, eps);
  return layer;
}

// bert: cls.predictions.transform.{dense,LayerNorm}, decoder; roberta: lm_head.{dense,layer_norm}.
void build_masked_lm(const Config& config, const ModelInfo& info, const Family& family,
                     const Source& source, const ConstView& words, Head& head) {
  const double eps = config.number_or("layer_norm_eps", kDefaultEps, 0);
  const int64_t width = info.hidden_size;
  const Source all = source.scope(family.roberta ? "lm_head." : "cls.predictions.");
  const Source transform = family.roberta ? all : all.scope("transform.");
  head.transform = transform.linear("dense.", width, width);
  head.transform_activation =
      family.roberta ? Activation::gelu : activation_of(config, "hidden_act", "gelu");
  head.transform_norm =
      transform.norm(family.roberta ? "layer_norm." : "LayerNorm.", width, eps);
  // Tied weights are stored once.
  const bool own = all.has("decoder.weight") && !config.flag_or("tie_word_embeddings", true);
  head.decoder = own ? all.table("decoder.weight", info.vocab_size, width) : words;
  const bool own_bias = own && all.has("decoder.bias");
  head.decoder_bias = all.copy(own_bias ? "decoder.bias" : "bias", {info.vocab_size});
}

void build_head(const Config& config, ModelInfo& info, const Family& family, const Source& source,
                const ConstView& words, Head& head) {
  const int64_t width = info.hidden_size;
  if (head.kind == HeadKind::sequence_classification ||
      head.kind == HeadKind::token_classification)
    info.labels = labels_of(config);
  const auto labels = static_cast<int64_t>(info.labels.size());
  switch (head.kind) {
    case HeadKind::base:
      // A checkpoint of a masked language model has no pooler.
      if (source.has("pooler.dense.weight"))
        head.pooler = source.linear("pooler.dense.", width, width);
      return;
    case HeadKind::masked_lm:
      return build_masked_lm(config, info, family, source, words, head);
    case HeadKind::sequence_classification:
      head.pooler = source.linear(family.roberta ? "classifier.dense." : "pooler.dense.", width,
                                  width);
      head.classifier =
          source.linear(family.roberta ? "classifier.out_proj." : "classifier.", labels, width);
      info.per_token = false;
      return;
    case HeadKind::token_classification:
      head.classifier = source.linear("classifier.", labels, width);
      return;
    case HeadKind::question_answering:
      head.classifier = source.linear("qa_outputs.", 2, width);
      return;
  }
}

}  // namespace

EncoderParts build_bert(const Config& config, const LoadOptions& options, const Source& source) {
  EncoderParts parts;
  ModelInfo& info = parts.info;
  info = sizes_of(config);
  Family family;
  family.roberta = info.model_type != "bert";
  if (config.text_or("position_embedding_type", "absolute") != "absolute")
    config.reject("position_embedding_type", "is '" + config.text("position_embedding_type") +
                                                 "', but known is absolute");
  if (config.flag_or("is_decoder", false))
    config.reject("is_decoder", "is true, but only encoders are known");
  const int64_t rows = config.integer("max_position_embeddings", 1, kMostConfigured);
  parts.positions.table_rows = rows;
  info.max_length = rows;
  if (family.roberta) {
    family.padding = config.integer_or("pad_token_id", 1, 0, rows);
    parts.positions.padding = family.padding;
    info.max_length = rows - family.padding - 1;
    if (info.max_length < 1)
      config.reject("max_position_embeddings", "leaves no positions beyond pad_token_id");
  }
  info.encoding = "learned absolute positions, added to the input";
  const double eps = config.number_or("layer_norm_eps", kDefaultEps, 0);
  const int64_t width = info.hidden_size;
  const Source embeddings = source.scope("embeddings.");
  InputEmbeddings& input = parts.embeddings;
  input.words = embeddings.table("word_embeddings.weight", info.vocab_size, width);
  input.positions = embeddings.table("position_embeddings.weight", rows, width);
  if (info.token_types > 0)
    input.token_types = embeddings.table("token_type_embeddings.weight", info.token_types, width);
  input.norm = embeddings.norm("LayerNorm.", width, eps);

  const auto encoding = std::make_shared<const None>(
      NoneConfig{.heads = info.heads, .head_dim = width / info.heads});
  for (int64_t n = 0; n < info.layers; ++n)
    parts.layers.push_back(build_layer(
        config, info, source.scope("encoder.layer." + std::to_string(n) + "."), encoding));

  parts.head.kind = head_of(config, options);
  info.head = name_of(parts.head.kind);
  build_head(config, info, family, source, input.words, parts.head);
  return parts;
}

}  // namespace locant::inline v0
