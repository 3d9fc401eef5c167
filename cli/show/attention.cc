#include "cli/show/attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "cli/queries.h"
#include "cli/words.h"
#include "locant/core/error.h"
#include "locant/draw/text.h"
#include "locant/draw/token_map.h"
#include "locant/models/model.h"

namespace locant::cli {
namespace {

constexpr double kWhole = 2 * kHalf + 20, kCell = 13, kLabels = 80;
constexpr int64_t kMostTokens = 512;

struct Tokens {
  std::vector<std::string> names;
  ModelInput input;
};

Tokens tokens_of(const AttentionRequest& request) {
  Tokens out;
  if (!request.ids.empty()) {
    out.input.ids = {parse_ids("show", request.ids)};
    for (const int64_t id : out.input.ids[0]) out.names.push_back(std::to_string(id));
    return out;
  }
  const Words words = load_words(request.dir, 0);
  const Encoded encoded = words.encode(request.passage);
  for (const int64_t id : encoded.ids) out.names.push_back(words.piece(id));
  out.input.ids = {encoded.ids};
  out.input.token_types = {encoded.token_type_ids};
  return out;
}

// Probabilities of a layer (H, L, M + L), of which the last L columns are the text's own.
class Weights {
 public:
  explicit Weights(const ConstView& p)
      : p_(p), memory_(p.shape[2] - p.shape[1]), hidden_(static_cast<size_t>(length() * length())) {
    for (int64_t n = 0; n < length() * length(); ++n) {
      bool seen = false;
      for (int64_t h = 0; h < p.shape[0]; ++h) seen = seen || at(h, n) != 0;
      hidden_[static_cast<size_t>(n)] = !seen;
    }
  }

  bool has_memory() const { return memory_ > 0; }

  // (L, L); NaN where no head looks: the model's mask hides these pairs.
  std::vector<double> of_head(int64_t head) const {
    std::vector<double> out;
    for (int64_t n = 0; n < length() * length(); ++n)
      out.push_back(hidden_[static_cast<size_t>(n)] ? std::numeric_limits<double>::quiet_NaN()
                                                    : at(head, n));
    return out;
  }

  // Of rows that have a choice: the first token of a causal model sees itself alone.
  double largest() const {
    double out = 0;
    for (int64_t h = 0; h < p_.shape[0]; ++h)
      for (int64_t n = 0; n < length() * length(); ++n)
        if (at(h, n) < 1) out = std::max(out, at(h, n));
    return out > 0 ? out : 1;
  }

 private:
  int64_t length() const { return p_.shape[1]; }
  double at(int64_t head, int64_t n) const {
    return *p_.at<float>(head, n / length(), memory_ + n % length());
  }

  ConstView p_;
  int64_t memory_;
  std::vector<bool> hidden_;
};

std::string quoted(const Passage& passage) {
  return printable(passage.text + (passage.pair ? " | " + *passage.pair : ""), 110);
}

}  // namespace

Figure draw_attention(const AttentionRequest& request) {
  // The layers are the same with any head.
  const std::shared_ptr<const Model> model = load(request.dir, {.head = "base"});
  const ModelInfo& info = model->info();
  require(request.layer >= 0 && request.layer < info.layers, "show", "--layer must be from 0 to ",
          info.layers - 1, ", got ", request.layer);
  require(request.head >= -1 && request.head < info.heads, "show", "--head must be from 0 to ",
          info.heads - 1, ", got ", request.head);
  Tokens tokens = tokens_of(request);
  const int64_t length = std::ssize(tokens.names);
  require(length <= kMostTokens, "show", "the text has ", length, " tokens; at most ", kMostTokens,
          " can be drawn");
  tokens.input.attention_layer = request.layer;
  const ModelOutput out = model->run(tokens.input);
  const Weights weights(out.attentions[0].view());

  const bool single = request.head >= 0 || info.heads == 1;
  const double wanted = kLabels + kCell * static_cast<double>(length);
  const double width = wanted <= kThird ? kThird : wanted <= kHalf || !single ? kHalf : kWhole;
  Figure figure{.title = fmt::format("{}, layer {} of 0–{}: who looks at whom", info.model_type,
                                     request.layer, info.layers - 1),
                .lines = {},
                .panels = {}};
  if (request.ids.empty()) figure.lines.push_back("“" + quoted(request.passage) + "”");
  figure.lines.push_back(
      weights.has_memory()
          ? "A row is a token that looks; what its weights lack to 1 goes to the memory."
          : "A row is a token that looks; its weights over the columns sum to 1.");
  figure.lines.push_back("Positions: " + info.encoding + ".");
  const double largest = weights.largest();
  for (int64_t head = 0; head < info.heads; ++head) {
    if (request.head >= 0 && head != request.head) continue;
    figure.panels.push_back(draw(TokenMap{.title = "head " + std::to_string(head),
                                          .rows = tokens.names,
                                          .columns = tokens.names,
                                          .values = weights.of_head(head),
                                          .largest = largest,
                                          .width = width}));
  }
  return figure;
}

}  // namespace locant::cli
