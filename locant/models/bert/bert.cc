#include "locant/models/bert/bert.h"

#include <string>

#include "locant/encodings/none/none.h"
#include "locant/io/file.h"
#include "locant/models/bert/parts.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

constexpr BertLayerNames kNames = {
    .qkv = {"attention.self.query.", "attention.self.key.", "attention.self.value."},
    .output = "attention.output.dense.",
    .output_norm = "attention.output.LayerNorm."};

}  // namespace

EncoderParts build_bert(const Config& config, const LoadOptions& options, const Source& source) {
  EncoderParts parts;
  ModelInfo& info = parts.info;
  info = sizes_of(config);
  info.token_types = config.integer_or("type_vocab_size", 2, 1, kMostConfigured);
  const bool roberta = info.model_type != "bert";
  if (config.text_or("position_embedding_type", "absolute") != "absolute")
    config.reject("position_embedding_type",
                  "is " + shown(config.text("position_embedding_type")) + ", but known is absolute");
  if (config.flag_or("is_decoder", false))
    config.reject("is_decoder", "is true, but only encoders are known");
  const int64_t rows = config.integer("max_position_embeddings", 1, kMostConfigured);
  parts.positions.table_rows = rows;
  info.max_length = rows;
  if (roberta) {  // counts positions from padding + 1
    const int64_t padding = config.integer_or("pad_token_id", 1, 0, rows);
    parts.positions.padding = padding;
    info.max_length = rows - padding - 1;
    if (info.max_length < 1)
      config.reject("max_position_embeddings", "leaves no positions beyond pad_token_id");
  }
  info.encoding = "learned absolute positions, added to the input";
  const int64_t width = info.hidden_size;
  const Source embeddings = source.scope("embeddings.");
  InputEmbeddings& input = parts.embeddings;
  input.words = embeddings.table("word_embeddings.weight", info.vocab_size, width);
  input.positions = embeddings.table("position_embeddings.weight", rows, width);
  input.token_types = embeddings.table("token_type_embeddings.weight", info.token_types, width);
  input.norm = embeddings.norm("LayerNorm.", width, bert_eps(config));

  const auto encoding =
      std::make_shared<const None>(NoneConfig{.heads = info.heads, .head_dim = width / info.heads});
  for (int64_t n = 0; n < info.layers; ++n)
    parts.layers.push_back(build_bert_layer(
        config, info, kNames, source.scope("encoder.layer." + std::to_string(n) + "."), encoding));

  parts.head.kind = head_of(config, options);
  info.head = name_of(parts.head.kind);
  build_bert_head(config, info, roberta, source, input.words, parts.head);
  return parts;
}

}  // namespace locant::inline v0
