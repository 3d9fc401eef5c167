#include "locant/models/transformer_xl/transformer_xl.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "locant/encodings/transformer_xl/transformer_xl.h"
#include "locant/models/head.h"
#include "locant/models/sampling.h"
#include "locant/models/sizes.h"
#include "locant/models/transformer_xl/transformer_xl_model.h"

namespace locant::inline v0 {
namespace {

constexpr HeadName kHeads[] = {{"base", "TransfoXLModel"},
                               {"causal_lm", "LMHeadModel"},
                               {"sequence_classification", "ForSequenceClassification"}};

// What config.json says of the words.
struct Words {
  std::vector<int64_t> ends;    // of the clusters; the last is the vocabulary's
  std::vector<int64_t> widths;  // of their vectors
  bool together = false;        // div_val 1: one table holds all clusters
  bool tied = true;             // the softmax has the embedding's words
  std::vector<bool> tied_projections;

  int64_t begin(size_t cluster) const { return cluster == 0 ? 0 : ends[cluster - 1]; }
  int64_t count(size_t cluster) const { return ends[cluster] - begin(cluster); }
};

Words words_of(const Config& config, const ModelInfo& info) {
  Words words;
  for (const double cutoff : config.numbers("cutoffs")) {
    const int64_t least = words.ends.empty() ? 1 : words.ends.back() + 1;
    if (cutoff != std::floor(cutoff) || cutoff < static_cast<double>(least) ||
        cutoff >= static_cast<double>(info.vocab_size))
      config.reject("cutoffs", "must be whole numbers that rise from 1 to below vocab_size " +
                                   std::to_string(info.vocab_size));
    words.ends.push_back(static_cast<int64_t>(cutoff));
  }
  words.ends.push_back(info.vocab_size);
  const int64_t div_val = config.integer_or("div_val", 4, 1, kMostConfigured);
  int64_t width = config.integer_or("d_embed", info.hidden_size, 1, kMostConfigured);
  for (size_t c = 0; c < words.ends.size(); ++c, width /= div_val) {
    if (width < 1)
      config.reject("div_val", "is " + std::to_string(div_val) + ", which leaves cluster " +
                                   std::to_string(c) + " no columns of d_embed");
    words.widths.push_back(width);
  }
  words.together = div_val == 1;
  words.tied = config.flag_or("tie_word_embeddings", true);
  words.tied_projections.assign(words.ends.size(), true);
  words.tied_projections[0] = false;
  if (config.has("tie_projs")) {
    words.tied_projections = config.flags("tie_projs");
    words.tied_projections.resize(words.ends.size(), false);
  }
  return words;
}

std::string numbered(const std::string& name, size_t number) {
  return name + "." + std::to_string(number);
}

// Rows [begin, begin + count) of a matrix or vector; of none, none.
ConstView rows(const ConstView& m, int64_t begin, int64_t count) {
  if (!m) return {};
  ConstView out = m;
  out.data = m.at<float>(begin);
  out.shape[0] = count;
  return out;
}

Linear linear_of(const Source& source, const ConstView& weight) {
  const ConstView none;
  return source.linear(std::span(&weight, 1), std::span(&none, 1));
}

void build_embedding(const Words& words, const Source& source, TransformerXLParts& parts) {
  const int64_t width = parts.info.hidden_size;
  const Source embedding = source.scope("word_emb.");
  for (size_t c = 0; c < (words.together ? 1 : words.ends.size()); ++c) {
    AdaptiveEmbedding::Cluster& cluster = parts.words.clusters.emplace_back();
    cluster.begin = words.begin(c);
    cluster.words = embedding.table(numbered("emb_layers", c) + ".weight",
                                    words.together ? parts.info.vocab_size : words.count(c),
                                    words.widths[c]);
    if (!words.together || words.widths[c] != width)
      cluster.projection = linear_of(
          embedding, embedding.get(numbered("emb_projs", c), {width, words.widths[c]}));
  }
}

// The transpose of a projection from the hidden states, which is stored as (D, E).
Linear build_out_projection(const Words& words, size_t cluster, int64_t width,
                            const Source& source) {
  if (words.together && words.widths[cluster] == width) return {};
  const size_t shared = words.together ? 0 : cluster;
  ConstView w = words.tied_projections[cluster]
                    ? source.get(numbered("word_emb.emb_projs", shared), {width, words.widths[cluster]})
                    : source.get(numbered("crit.out_projs", cluster), {width, words.widths[cluster]});
  if (w) {
    std::swap(w.shape[0], w.shape[1]);
    std::swap(w.strides[0], w.strides[1]);
  }
  return linear_of(source, w);
}

void build_softmax(const Words& words, const Source& source, TransformerXLParts& parts) {
  const int64_t vocabulary = parts.info.vocab_size;
  AdaptiveSoftmax& softmax = parts.softmax;
  for (size_t c = 0; c < words.ends.size(); ++c) {
    const size_t stored = words.together ? 0 : c;
    const std::string layer = numbered("crit.out_layers", stored);
    const int64_t count = words.together ? vocabulary : words.count(c);
    const int64_t first = words.together ? words.begin(c) : 0;
    const ConstView table = words.tied
                                ? parts.words.clusters[stored].words
                                : source.table(layer + ".weight", count, words.widths[c]);
    softmax.clusters.push_back(
        {.begin = words.begin(c),
         .projection = build_out_projection(words, c, parts.info.hidden_size, source),
         .words = rows(table, first, words.count(c)),
         .bias = rows(source.copy(layer + ".bias", {count}), first, words.count(c))});
  }
  const auto others = static_cast<int64_t>(words.ends.size()) - 1;
  if (others == 0) return;
  softmax.cluster_words = source.copy("crit.cluster_weight", {others, words.widths[0]});
  softmax.cluster_bias = source.copy("crit.cluster_bias", {others});
}

void build_layer(const Config& config, const TransformerXLConfig& encoding, const Source& model,
                 int64_t index, TransformerXLParts& parts) {
  const ModelInfo& info = parts.info;
  const int64_t D = info.hidden_size, H = encoding.heads, d = encoding.head_dim;
  const double eps = config.number_or("layer_norm_epsilon", 1e-5, 0);
  const Source source = model.scope("layers." + std::to_string(index) + ".");
  const Source attention = source.scope("dec_attn.");
  RecurrentLayer layer;
  layer.heads = H;
  layer.head_dim = d;
  layer.norm_first = config.flag_or("pre_lnorm", false);
  const ConstView qkv = attention.get("qkv_net.weight", {3 * H * d, D});
  layer.queries = linear_of(attention, rows(qkv, 0, H * d));
  layer.keys_values = linear_of(attention, rows(qkv, H * d, 2 * H * d));
  layer.output = attention.linear("o_net.", D, H * d, false);
  layer.attention_norm = attention.norm("layer_norm.", D, eps);
  const Source ff = source.scope("pos_ff.");
  layer.up = ff.linear("CoreNet.0.", info.intermediate_size, D);
  layer.activation = Activation::relu;
  layer.down = ff.linear("CoreNet.3.", D, info.intermediate_size);
  layer.norm = ff.norm("layer_norm.", D, eps);
  parts.layers.push_back(std::move(layer));

  // Shared by all layers they are stored once, in the model or in the first layer.
  const bool shared = !config.flag_or("untie_r", true) && model.has("r_w_bias");
  const Source biases = shared ? model : attention;
  const std::vector<std::pair<std::string, ConstView>> parameters = {
      {"r_w_bias", biases.copy("r_w_bias", {H, d})},
      {"r_r_bias", biases.copy("r_r_bias", {H, d})},
      {"r_net", attention.copy("r_net.weight", {H * d, D})}};
  parts.encodings.push_back([encoding, parameters] {
    auto made = std::make_shared<TransformerXL>(encoding);
    for (const auto& [name, values] : parameters) made->set(name, values);
    return made;
  });
}

}  // namespace

std::shared_ptr<const Model> build_transformer_xl(const Config& config, const LoadOptions& options,
                                                  const Source& source) {
  TransformerXLParts parts;
  ModelInfo& info = parts.info;
  info = sizes_by(config, kRecurrentNames);
  info.encoding = "Transformer-XL's relative positions, in the scores";
  if (config.integer_or("attn_type", 0) != 0)
    config.reject("attn_type",
                  "is " + std::to_string(config.integer("attn_type")) + ", but known is 0");
  if (config.integer_or("sample_softmax", -1) > 0)
    config.reject("sample_softmax", "is " + std::to_string(config.integer("sample_softmax")) +
                                        ", but a softmax by samples is not known");
  const TransformerXLConfig encoding{
      .heads = info.heads,
      .head_dim = config.integer("d_head", 1, kMostConfigured),
      .d_model = info.hidden_size,
      .clamp_len = config.integer_or("clamp_len", 1000, -1, kMostConfigured)};
  check_head_dim(config, "d_head", encoding.heads, encoding.head_dim);
  static_cast<void>(TransformerXL(encoding));  // its checks
  parts.farthest = farthest_distance(encoding.clamp_len);
  parts.mem_len = config.integer_or("mem_len", 1600, 0, kMostConfigured);
  if (parts.mem_len > 0) info.takes = {"mems"};
  parts.same_length = config.flag_or("same_length", true);
  if (parts.same_length && parts.mem_len == 0)
    config.reject("same_length", "is true, but mem_len is 0: no query would see anything");
  const Words words = words_of(config, info);
  build_embedding(words, source, parts);
  for (int64_t n = 0; n < info.layers; ++n) build_layer(config, encoding, source, n, parts);
  info.head = head_name(config, options, kHeads);
  if (info.head == "causal_lm") {
    build_softmax(words, source, parts);
    parts.stop = stop_tokens_of(config, info.vocab_size);
  } else if (info.head == "sequence_classification") {
    info.per_token = false;
    parts.classifier = label_classifier(config, source, "score.", info, false);
  }
  parts.storage = source.finish(info);
  return std::make_shared<TransformerXLModel>(std::move(parts));
}

}  // namespace locant::inline v0
