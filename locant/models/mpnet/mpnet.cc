#include "locant/models/mpnet/mpnet.h"

#include <cmath>
#include <memory>
#include <string>

#include "locant/encodings/t5/t5.h"
#include "locant/models/bert/parts.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

constexpr BertLayerNames kNames = {
    .qkv = {"attention.attn.q.", "attention.attn.k.", "attention.attn.v."},
    .output = "attention.attn.o.",
    .output_norm = "attention.LayerNorm."};

// Positions count from padding + 1, whatever pad_token_id says.
constexpr int64_t kPadding = 1;

// So many buckets are used, however many rows the table has.
constexpr int64_t kBuckets = 32;
constexpr int64_t kMaxDistance = 128;

std::shared_ptr<const Encoding> build_bias(const Config& config, const ModelInfo& info,
                                           const Source& source) {
  const int64_t rows =
      config.integer_or("relative_attention_num_buckets", kBuckets, kBuckets, kMostConfigured);
  const int64_t dim = info.hidden_size / info.heads;
  auto encoding =
      std::make_shared<T5>(T5Config{.heads = info.heads,
                                    .head_dim = dim,
                                    .num_buckets = kBuckets,
                                    .max_distance = kMaxDistance,
                                    .scale = 1.0 / std::sqrt(static_cast<double>(dim))});
  ConstView table = source.copy("encoder.relative_attention_bias.weight", {rows, info.heads});
  if (table) {
    table.shape[0] = kBuckets;
    encoding->set("bias", table);
  }
  return encoding;
}

}  // namespace

EncoderParts build_mpnet(const Config& config, const LoadOptions& options, const Source& source) {
  EncoderParts parts;
  ModelInfo& info = parts.info;
  info = sizes_of(config);
  info.token_types = 0;
  const int64_t width = info.hidden_size;
  const int64_t rows = config.integer("max_position_embeddings", kPadding + 2, kMostConfigured);
  parts.positions = {.table_rows = rows, .padding = kPadding};
  info.max_length = rows - kPadding - 1;
  info.encoding =
      "learned absolute positions, added to the input; relative bias, 32 log buckets up to 128";

  const Source embeddings = source.scope("embeddings.");
  InputEmbeddings& input = parts.embeddings;
  input.words = embeddings.table("word_embeddings.weight", info.vocab_size, width);
  input.positions = embeddings.table("position_embeddings.weight", rows, width);
  input.norm = embeddings.norm("LayerNorm.", width, bert_eps(config));

  const std::shared_ptr<const Encoding> encoding = build_bias(config, info, source);
  for (int64_t n = 0; n < info.layers; ++n)
    parts.layers.push_back(build_bert_layer(
        config, info, kNames, source.scope("encoder.layer." + std::to_string(n) + "."), encoding));

  parts.head.kind = head_of(config, options);
  info.head = name_of(parts.head.kind);
  build_bert_head(config, info, true, source, input.words, parts.head);
  return parts;
}

}  // namespace locant::inline v0
