#include "locant/models/deberta/deberta.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "locant/encodings/deberta/deberta.h"
#include "locant/encodings/none/none.h"
#include "locant/models/deberta/config.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

// Rows [begin, begin + count) of a matrix; an empty one stays empty.
ConstView rows_of(const ConstView& m, int64_t begin, int64_t count) {
  if (!m) return {};
  ConstView out = m;
  out.data = m.at<float>(begin);
  out.shape[0] = count;
  return out;
}

ConstView elements_of(const ConstView& v, int64_t begin, int64_t count) {
  return v ? view(v.at<float>(begin), {count}) : ConstView{};
}

// v1's in_proj (3·H·d, D) has q, k and v of head 0, then of head 1, ...; q_bias and v_bias (H·d)
// stand apart and keys have none. Queries of all heads come first here.
Linear build_qkv_v1(const DebertaModelConfig& c, const Source& self) {
  const int64_t width = c.info.hidden_size, d = c.head_dim();
  const ConstView in = self.get("in_proj.weight", {3 * width, width});
  const ConstView q_bias = self.get("q_bias", {width}), v_bias = self.get("v_bias", {width});
  std::vector<ConstView> weights, biases;
  for (int64_t part = 0; part < 3; ++part)
    for (int64_t h = 0; h < c.info.heads; ++h) {
      weights.push_back(rows_of(in, (3 * h + part) * d, d));
      biases.push_back(part == 1 ? ConstView{} : elements_of(part == 0 ? q_bias : v_bias, h * d, d));
    }
  return self.linear(weights, biases);
}

Linear build_qkv_v2(const DebertaModelConfig& c, const Source& self) {
  const int64_t width = c.info.hidden_size;
  std::vector<ConstView> weights, biases;
  for (const char* name : {"query_proj.", "key_proj.", "value_proj."}) {
    const Source part = self.scope(name);
    weights.push_back(part.get("weight", {width, width}));
    biases.push_back(part.get("bias", {width}));
  }
  return self.linear(weights, biases);
}

// table (2S, D)·Wᵀ + b as (H, 2S, d), for the encoding.
ConstView project_table(const DebertaModelConfig& c, const Source& self, const char* name,
                        bool bias, const ConstView& table) {
  const int64_t width = c.info.hidden_size, rows = 2 * c.span(), d = c.head_dim();
  const Source part = self.scope(name);
  const ConstView w = part.get("weight", {width, width});
  const ConstView b = bias ? part.get("bias", {width}) : ConstView{};
  if (self.dry()) return {};
  Tensor flat(DType::f32, {rows, width});
  project(table, w, b, flat.view());
  const View out = self.allocate({c.info.heads, rows, d});
  for (int64_t h = 0; h < c.info.heads; ++h)
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(flat.view().at<float>(r, h * d), d, out.at<float>(h, r));
  return out;
}

bool has_positions(const DebertaModelConfig& c) {
  return c.relative && (c.c2p || c.p2c);
}

DebertaConfig encoding_config(const DebertaModelConfig& c) {
  return {.heads = c.info.heads,
          .head_dim = c.head_dim(),
          .position_buckets = c.position_buckets,
          .max_relative_positions = c.max_relative,
          .c2p = c.c2p,
          .p2c = c.p2c,
          .scale_factor = c.scale_factor};
}

// `table` is the relative table, normalised if the model does so; null if attention is not relative.
std::shared_ptr<const Encoding> build_encoding(const DebertaModelConfig& c, const Source& self,
                                               const ConstView& table) {
  if (!has_positions(c))
    return std::make_shared<const None>(
        NoneConfig{.heads = c.info.heads, .head_dim = c.head_dim()});
  auto encoding = std::make_shared<Deberta>(encoding_config(c));
  const auto set = [&](const char* parameter, const char* name, bool bias) {
    const ConstView projected = project_table(c, self, name, bias, table);
    if (projected) encoding->set(parameter, projected);
  };
  const char* key = c.v1 ? "pos_proj." : c.share_key ? "key_proj." : "pos_key_proj.";
  const char* query = c.v1 ? "pos_q_proj." : c.share_key ? "query_proj." : "pos_query_proj.";
  if (c.c2p) set("pos_key", key, !c.v1);
  if (c.p2c) set("pos_query", query, true);
  return encoding;
}

EncoderLayer build_layer(const Config& config, const DebertaModelConfig& c, const Source& source,
                         const ConstView& table) {
  const int64_t width = c.info.hidden_size, inner = c.info.intermediate_size;
  const Source self = source.scope("attention.self.");
  EncoderLayer layer;
  layer.heads = c.info.heads;
  layer.head_dim = c.head_dim();
  layer.qkv = c.v1 ? build_qkv_v1(c, self) : build_qkv_v2(c, self);
  layer.encoding = build_encoding(c, self, table);
  // Hugging Face scales by the listed terms even where relative_attention is false.
  layer.scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim() * c.scale_factor));
  if (c.talking_heads) {
    layer.talking_logits = self.copy("head_logits_proj.weight", {c.info.heads, c.info.heads});
    layer.talking_probabilities =
        self.copy("head_weights_proj.weight", {c.info.heads, c.info.heads});
  }
  layer.output = source.linear("attention.output.dense.", width, width);
  layer.output_norm = source.norm("attention.output.LayerNorm.", width, c.eps);
  layer.up = source.linear("intermediate.dense.", inner, width);
  layer.activation = activation_of(config, "hidden_act", "gelu");
  layer.down = source.linear("output.dense.", width, inner);
  layer.norm = source.norm("output.LayerNorm.", width, c.eps);
  return layer;
}

// The relative table for as long as layers are built.
Tensor build_table(const DebertaModelConfig& c, const Source& encoder) {
  const int64_t width = c.info.hidden_size, rows = 2 * c.span();
  if (!c.relative) return {};
  const ConstView stored = encoder.get("rel_embeddings.weight", {rows, width});
  LayerNorm norm;
  if (c.norm_table) norm = encoder.norm("LayerNorm.", width, c.eps);
  if (encoder.dry()) return {};
  Tensor table(DType::f32, {rows, width});
  std::copy_n(stored.at<float>(), stored.size(), table.view().at<float>());
  if (c.norm_table) norm.run(table.view(), table.view());
  return table;
}

// conv.weight (D, D/groups, kernel): a row of it becomes one row per tap, taps outermost.
ConvolutionStep build_convolution(const Config& config, const DebertaModelConfig& c,
                                  const Source& source) {
  ConvolutionStep step;
  if (c.conv_kernel == 0) return step;
  const int64_t width = c.info.hidden_size, part = width / c.conv_groups;
  const ConstView w = source.get("conv.weight", {width, part, c.conv_kernel});
  const ConstView b = source.get("conv.bias", {width});
  step.kernel = c.conv_kernel;
  step.activation = activation_of(config, "conv_act", "tanh");
  step.norm = source.norm("LayerNorm.", width, c.eps);
  if (source.dry()) return step;
  std::vector<float> taps(static_cast<size_t>(width * part * c.conv_kernel));
  const View turned = view(taps.data(), {width, c.conv_kernel, part});
  for (int64_t o = 0; o < width; ++o)
    for (int64_t i = 0; i < part; ++i)
      for (int64_t t = 0; t < c.conv_kernel; ++t)
        *turned.at<float>(o, t, i) = *w.at<float>(o, i, t);
  for (int64_t group = 0; group < c.conv_groups; ++group) {
    const ConstView rows = view(static_cast<const float*>(turned.at<float>(group * part)),
                                {part, c.conv_kernel * part});
    const ConstView bias = elements_of(b, group * part, part);
    step.groups.push_back(source.linear(std::span(&rows, 1), std::span(&bias, 1)));
  }
  return step;
}

// Two layouts: lm_predictions.lm_head (the original's, whose decoder is the word embeddings), and
// Hugging Face's cls.predictions.
void build_masked_lm(const Config& config, const DebertaModelConfig& c, const Source& source,
                     const ConstView& words, Head& head) {
  const int64_t width = c.info.hidden_size, vocabulary = c.info.vocab_size;
  const bool both = source.has("lm_predictions.lm_head.bias") && source.has("cls.predictions.bias");
  const bool original = both ? !config.flag_or("legacy", true)
                             : source.has("lm_predictions.lm_head.bias") ||
                                   (!source.has("cls.predictions.bias") &&
                                    !config.flag_or("legacy", true));
  const Source all = source.scope(original ? "lm_predictions.lm_head." : "cls.predictions.");
  const Source transform = original ? all : all.scope("transform.");
  const int64_t inner = original ? width : c.embedding_size;
  head.transform = transform.linear("dense.", inner, width);
  head.transform_activation = activation_of(config, "hidden_act", "gelu");
  head.transform_norm = transform.norm("LayerNorm.", inner, c.eps);
  const bool own = !original && !config.flag_or("tie_word_embeddings", true);
  head.decoder = own ? all.table("decoder.weight", vocabulary, c.embedding_size) : words;
  head.decoder_bias =
      all.copy(own && all.has("decoder.bias") ? "decoder.bias" : "bias", {vocabulary});
  if (inner != c.embedding_size)
    config.reject("embedding_size", "is " + std::to_string(c.embedding_size) +
                                        ", but the lm_predictions head needs hidden_size " +
                                        std::to_string(width));
}

void build_head(const Config& config, const DebertaModelConfig& c, const Source& source,
                const ConstView& words, ModelInfo& info, Head& head) {
  const int64_t width = info.hidden_size;
  switch (head.kind) {
    case HeadKind::base:
      return;
    case HeadKind::masked_lm:
      return build_masked_lm(config, c, source, words, head);
    case HeadKind::sequence_classification: {
      const int64_t pooled = config.integer_or("pooler_hidden_size", width, width, width);
      head.pooler = source.linear("pooler.dense.", pooled, pooled);
      head.pooler_activation = activation_of(config, "pooler_hidden_act", "gelu");
      head.classifier = label_classifier(config, source, "classifier.", info);
      info.per_token = false;
      return;
    }
    case HeadKind::token_classification:
      head.classifier = label_classifier(config, source, "classifier.", info);
      return;
    case HeadKind::question_answering:
      head.classifier = source.linear("qa_outputs.", 2, width);
      return;
  }
}

// Whether the last layer runs twice, for masked language models that know absolute positions only
// there.
bool wants_enhanced(const Config& config, const DebertaModelConfig& c, const LoadOptions& options,
                    const Source& embeddings, HeadKind head) {
  const std::string& wish = options.mask_decoder;
  require(wish == "auto" || wish == "enhanced" || wish == "plain", "load",
          "mask_decoder must be one of auto, enhanced, plain, got '", wish, "'");
  if (head != HeadKind::masked_lm || wish == "plain") return false;
  const bool possible = !c.position_biased_input && c.embedding_size == c.info.hidden_size;
  if (wish == "enhanced" && !possible)
    config.reject("position_biased_input",
                  "must be false and embedding_size hidden_size for the enhanced mask decoder");
  return possible && (wish == "enhanced" || embeddings.has("position_embeddings.weight"));
}

std::string encoding_in_words(const DebertaModelConfig& c) {
  std::string text = c.position_biased_input ? "learned absolute positions, added to the input" : "";
  if (has_positions(c)) {
    text += text.empty() ? "" : "; ";
    text += "disentangled attention (";
    text += c.c2p && c.p2c ? "c2p, p2c" : c.c2p ? "c2p" : "p2c";
    text += c.position_buckets > 0 ? ", " + std::to_string(c.position_buckets) + " log buckets up to "
                                   : ", distances up to ";
    text += std::to_string(c.max_relative) + ")";
  }
  return text.empty() ? "none" : text;
}

}  // namespace

EncoderParts build_deberta(const Config& config, const LoadOptions& options, const Source& source) {
  const DebertaModelConfig c = read_deberta_config(config);
  const int64_t width = c.info.hidden_size;
  EncoderParts parts;
  ModelInfo& info = parts.info;
  info = c.info;
  info.encoding = encoding_in_words(c);
  parts.head.kind = head_of(config, options);
  info.head = name_of(parts.head.kind);

  const Source embeddings = source.scope("embeddings.");
  InputEmbeddings& input = parts.embeddings;
  input.words = embeddings.table("word_embeddings.weight", info.vocab_size, c.embedding_size);
  const auto positions = [&] {
    parts.positions.table_rows = info.max_length = c.positions;
    return embeddings.table("position_embeddings.weight", c.positions, c.embedding_size);
  };
  if (c.position_biased_input) input.positions = positions();
  if (wants_enhanced(config, c, options, embeddings, parts.head.kind)) {
    parts.decoder_positions = positions();
    info.enhanced_mask_decoder = true;
  }
  if (info.token_types > 0)
    input.token_types =
        embeddings.table("token_type_embeddings.weight", info.token_types, c.embedding_size);
  if (c.embedding_size != width)
    input.projection = embeddings.linear("embed_proj.", width, c.embedding_size, false);
  input.norm = embeddings.norm("LayerNorm.", width, c.eps);

  // Few odd buckets go on changing far beyond max_relative_positions.
  if (has_positions(c))
    check_distances(config, "position_buckets", Deberta::reach(encoding_config(c)), info.layers,
                    kMostDistances, "with max_relative_positions tells apart distances up to");
  const Source encoder = source.scope("encoder.");
  const Tensor table = build_table(c, encoder);
  for (int64_t n = 0; n < info.layers; ++n)
    parts.layers.push_back(build_layer(
        config, c, encoder.scope("layer." + std::to_string(n) + "."), table.view()));
  parts.convolution = build_convolution(config, c, encoder.scope("conv."));
  build_head(config, c, source, input.words, info, parts.head);
  return parts;
}

}  // namespace locant::inline v0
