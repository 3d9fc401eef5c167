#include "locant/models/head.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/kernels/rows.h"
#include "locant/layers/embedding.h"
#include "locant/models/named.h"

namespace locant::inline v0 {
namespace {

constexpr std::pair<HeadKind, const char*> kHeads[] = {
    {HeadKind::base, "base"},
    {HeadKind::masked_lm, "masked_lm"},
    {HeadKind::sequence_classification, "sequence_classification"},
    {HeadKind::token_classification, "token_classification"},
    {HeadKind::question_answering, "question_answering"}};

constexpr HeadName kClasses[] = {{"base", "Model"},
                                 {"masked_lm", "ForMaskedLM"},
                                 {"masked_lm", "ForPreTraining"},
                                 {"sequence_classification", "ForSequenceClassification"},
                                 {"token_classification", "ForTokenClassification"},
                                 {"question_answering", "ForQuestionAnswering"}};

constexpr std::pair<const char*, Activation> kActivations[] = {
    {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},           {"tanh", Activation::tanh},
    {"silu", Activation::silu},           {"swish", Activation::silu},
    {"sigmoid", Activation::sigmoid},     {"linear", Activation::none}};

Tensor run_linear(const Linear& layer, const ConstView& x, Activation activation) {
  Tensor out(DType::f32, {x.shape[0], layer.outputs()});
  layer.run(x, out.view(), {.activation = activation, .residual = {}});
  return out;
}

// One column of a matrix.
Tensor column(const ConstView& m, int64_t index) {
  Tensor out(DType::f32, {m.shape[0]});
  for (int64_t row = 0; row < m.shape[0]; ++row)
    *out.view().at<float>(row) = *m.at<float>(row, index);
  return out;
}

std::vector<std::string> labels_of(const Config& config) {
  std::vector<std::string> labels;
  if (config.has("id2label")) {
    const Config names = config.child("id2label");
    labels.resize(names.keys().size());
    for (const std::string& key : names.keys()) {
      size_t index = labels.size();
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (error != std::errc() || end != key.data() + key.size() || index >= labels.size())
        config.reject("id2label", "must have the keys 0 to " + std::to_string(labels.size() - 1) +
                                      ", got " + shown(key));
      labels[index] = names.text(key);
    }
    if (labels.empty()) config.reject("id2label", "is empty");
    return labels;
  }
  constexpr int64_t kMostLabels = 1 << 20;
  for (int64_t n = 0; n < config.integer_or("num_labels", 2, 1, kMostLabels); ++n)
    labels.push_back("LABEL_" + std::to_string(n));
  return labels;
}

}  // namespace

void Head::run(Tensor hidden, const Batch& batch, ModelOutput& out) const {
  const ConstView h = std::as_const(hidden).view();
  Tensor pooled;
  if (pooler) {
    Tensor first(DType::f32, {static_cast<int64_t>(batch.firsts.size()), h.shape[1]});
    gather_rows(h, batch.firsts, false, first.view());
    pooled = run_linear(pooler, first.view(), pooler_activation);
  }
  switch (kind) {
    case HeadKind::base:
      out.pooler_output = std::move(pooled);
      out.last_hidden_state = std::move(hidden);
      return;
    case HeadKind::sequence_classification:
      out.logits = run_linear(classifier, std::as_const(pooled).view(), Activation::none);
      return;
    case HeadKind::token_classification:
      out.logits = run_linear(classifier, h, Activation::none);
      return;
    case HeadKind::question_answering: {
      const Tensor spans = run_linear(classifier, h, Activation::none);
      out.start_logits = column(spans.view(), 0);
      out.end_logits = column(spans.view(), 1);
      return;
    }
    case HeadKind::masked_lm: {
      Tensor state = run_linear(transform, h, transform_activation);
      transform_norm.run(std::as_const(state).view(), state.view());
      out.logits = Tensor(DType::f32, {h.shape[0], decoder.shape[0]});
      project(std::as_const(state).view(), decoder, decoder_bias, out.logits.view());
      return;
    }
  }
}

const char* name_of(HeadKind kind) {
  for (const auto& [head, name] : kHeads)
    if (head == kind) return name;
  return "";
}

std::string head_name(const Config& config, const LoadOptions& options,
                      std::span<const HeadName> known) {
  if (!options.head.empty()) {
    std::vector<std::string> names;
    for (const HeadName& head : known) {
      if (options.head == head.name) return head.name;
      if (std::find(names.begin(), names.end(), head.name) == names.end())
        names.emplace_back(head.name);
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    fail("load", "head must be one of ", text, ", got '", options.head, "'");
  }
  if (!config.has("architectures")) return known[0].name;
  const std::vector<std::string> architectures = config.texts("architectures");
  if (architectures.empty()) return known[0].name;
  std::string text;
  for (const HeadName& head : known) {
    // "Model" alone has no head: BertLMHeadModel is another.
    const bool bare = head.ending == std::string_view("Model");
    if (architectures[0].ends_with(head.ending) &&
        !(bare && architectures[0].ends_with("HeadModel")))
      return head.name;
    text.append(text.empty() ? "..." : ", ...").append(head.ending);
  }
  config.reject("architectures", "names " + shown(architectures[0]) + ", but known are " + text +
                                     "; a head can be chosen when loading");
}

HeadKind head_of(const Config& config, const LoadOptions& options) {
  const std::string name = head_name(config, options, kClasses);
  return std::find_if(std::begin(kHeads), std::end(kHeads),
                      [&](const auto& head) { return name == head.second; })
      ->first;
}

Linear label_classifier(const Config& config, const Source& source, std::string_view prefix,
                        ModelInfo& info, bool bias) {
  info.labels = labels_of(config);
  return source.linear(prefix, static_cast<int64_t>(info.labels.size()), info.hidden_size, bias);
}

Activation activation_of(const Config& config, const char* key, const std::string& fallback) {
  return activation_named(config.text_or(key, fallback), config, key);
}

Activation activation_named(const std::string& name, const Config& config, const char* key) {
  return named(config, key, name, kActivations);
}

}  // namespace locant::inline v0
