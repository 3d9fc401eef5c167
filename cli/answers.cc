#include "cli/answers.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "locant/core/error.h"

namespace locant::cli {
namespace {

using nlohmann::ordered_json;

std::span<const float> row_of(const ConstView& values, int64_t row) {
  return {values.at<float>(row), static_cast<size_t>(values.shape[1])};
}

std::vector<double> softmax(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> out(logits.size());
  double sum = 0;
  for (size_t n = 0; n < logits.size(); ++n) sum += out[n] = std::exp(logits[n] - most);
  require(std::isfinite(sum), "run",
          "the model's logits hold NaN or infinity; `locant info DIR --finite` tells whether its "
          "weights do");
  for (double& x : out) x /= sum;
  return out;
}

// The places of the `count` largest values, largest first.
std::vector<size_t> largest(const std::vector<double>& values, int64_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto end = order.begin() + std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](size_t a, size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  order.erase(end, order.end());
  return order;
}

ordered_json bytes_of(const ByteRange& range) {
  return {range.begin, range.end};
}

std::string piece_of(int64_t id, const Query& query, const Words& words) {
  return query.from_text ? words.piece(id) : std::to_string(id);
}

// Whether a token stands for a part of a text, as [CLS] does not.
bool has_text(const Query& query, size_t token) {
  const ByteRange& range = query.encoded.bytes[token];
  return range.end > range.begin;
}

void add_labels(std::span<const float> logits, const ModelInfo& info, LabelKind kind,
                ordered_json& answer) {
  if (kind == LabelKind::regression) {
    if (logits.size() == 1) answer["value"] = logits[0];
    for (size_t n = 0; logits.size() > 1 && n < logits.size(); ++n)
      answer["values"].push_back({{"label", info.labels[n]}, {"value", logits[n]}});
    return;
  }
  std::vector<double> probabilities = softmax(logits);
  if (kind == LabelKind::any_of)
    for (size_t n = 0; n < logits.size(); ++n)
      probabilities[n] = 1.0 / (1.0 + std::exp(-static_cast<double>(logits[n])));
  const std::vector<size_t> order = largest(probabilities, std::ssize(probabilities));
  answer["label"] = info.labels[order[0]];
  answer["probability"] = probabilities[order[0]];
  for (const size_t n : order)
    answer["labels"].push_back(
        {{"label", info.labels[n]}, {"logit", logits[n]}, {"probability", probabilities[n]}});
}

void add_token_labels(const ConstView& logits, int64_t begin, const Query& query,
                      const ModelInfo& info, const Words& words, ordered_json& answer) {
  answer["labels"] = ordered_json::array();
  for (size_t token = 0; token < query.encoded.ids.size(); ++token) {
    const auto probabilities = softmax(row_of(logits, begin + static_cast<int64_t>(token)));
    const size_t best = largest(probabilities, 1)[0];
    ordered_json entry = {{"token", piece_of(query.encoded.ids[token], query, words)},
                          {"label", info.labels[best]},
                          {"probability", probabilities[best]}};
    if (query.from_text) entry["bytes"] = bytes_of(query.encoded.bytes[token]);
    answer["labels"].push_back(std::move(entry));
  }
}

// Tokens where an answer may begin and end: of the second text if there is one, else all that stand
// for text; of plain ids, those of type 1 or else all but the first.
std::vector<size_t> candidates(const Query& query) {
  const std::vector<int64_t>& types = query.encoded.token_type_ids;
  const bool second = std::find(types.begin(), types.end(), 1) != types.end();
  std::vector<size_t> out;
  for (size_t token = 0; token < query.encoded.ids.size(); ++token)
    if ((!second || types[token] == 1) && (query.from_text ? has_text(query, token) : token > 0))
      out.push_back(token);
  return out;
}

// The span with the largest P(first)·P(last), where both are a softmax over the candidates and the
// first token ([CLS]), which stands for "no answer".
void add_span(const ModelOutput& out, int64_t begin, const Query& query, int64_t most,
              ordered_json& answer) {
  const std::vector<size_t> tokens = candidates(query);
  const auto probabilities = [&](const Tensor& logits) {
    std::vector<float> chosen = {*logits.view().at<float>(begin)};
    for (const size_t token : tokens)
      chosen.push_back(*logits.view().at<float>(begin + static_cast<int64_t>(token)));
    return softmax(chosen);
  };
  const std::vector<double> first = probabilities(out.start_logits),
                            last = probabilities(out.end_logits);
  double best = -1;
  size_t from = 0, to = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    for (size_t j = i; j < tokens.size() && j - i < static_cast<size_t>(most); ++j)
      if (const double p = first[i + 1] * last[j + 1]; p > best) {
        best = p;
        from = tokens[i];
        to = tokens[j];
      }
  answer["no_answer"] = first[0] * last[0];
  if (best < 0) return;  // a text without words
  answer["probability"] = best;
  answer["first"] = from;
  answer["last"] = to;
  if (!query.from_text) return;
  const ByteRange range = {query.encoded.bytes[from].begin, query.encoded.bytes[to].end};
  const Passage& passage = query.passage;
  answer["bytes"] = bytes_of(range);
  answer["answer"] =
      (passage.pair ? *passage.pair : passage.text).substr(range.begin, range.end - range.begin);
}

// The likeliest tokens by a row of logits, and how likely they are.
ordered_json guesses_of(std::span<const float> logits, const Words& words, int64_t top_k) {
  const std::vector<double> probabilities = softmax(logits);
  ordered_json out = ordered_json::array();
  for (const size_t id : largest(probabilities, top_k))
    out.push_back({{"token", words.piece(static_cast<int64_t>(id))},
                   {"id", id},
                   {"probability", probabilities[id]}});
  return out;
}

void add_guesses(const ConstView& logits, int64_t begin, const Query& query, const Words& words,
                 int64_t top_k, ordered_json& answer) {
  const std::vector<int64_t>& ids = query.encoded.ids;
  if (!query.from_text || words.mask < 0) {
    for (int64_t row = begin; row < begin + std::ssize(ids); ++row) {
      answer["best"].push_back(largest(softmax(row_of(logits, row)), 1)[0]);
    }
    return;
  }
  answer["masks"] = ordered_json::array();
  for (size_t token = 0; token < ids.size(); ++token) {
    if (ids[token] != words.mask) continue;
    const auto row = row_of(logits, begin + static_cast<int64_t>(token));
    answer["masks"].push_back({{"position", token}, {"guesses", guesses_of(row, words, top_k)}});
  }
}

std::string with_probability(const ordered_json& entry, const char* name) {
  return fmt::format("{} {:.4f}", entry[name].get<std::string>(),
                     entry["probability"].get<double>());
}

std::string joined(const ordered_json& entries, const char* name, int64_t most) {
  std::vector<std::string> parts;
  for (const ordered_json& entry : entries)
    if (std::ssize(parts) < most) parts.push_back(with_probability(entry, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string readable_values(const ordered_json& values) {
  std::vector<std::string> parts;
  for (const ordered_json& entry : values)
    parts.push_back(
        fmt::format("{} {:.6g}", entry["label"].get<std::string>(), entry["value"].get<float>()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string readable_token_labels(const ordered_json& labels, const Query& query) {
  std::string out;
  for (size_t token = 0; token < labels.size(); ++token)
    if (!query.from_text || has_text(query, token))
      out += fmt::format("\n  {:<16} {}", labels[token]["token"].get<std::string>(),
                         with_probability(labels[token], "label"));
  return out;
}

std::string readable_masks(const ordered_json& masks, int64_t top_k) {
  if (masks.empty()) return "has no masked word; write [MASK] where one is to be guessed";
  std::string out;
  for (const ordered_json& mask : masks)
    out += fmt::format("\n  token {}: {}", mask["position"].get<int64_t>(),
                       joined(mask["guesses"], "token", top_k));
  return out;
}

std::string readable_span(const ordered_json& answer) {
  if (!answer.contains("first")) return "holds no words to answer with";
  const double p = answer["probability"], none = answer["no_answer"];
  std::string out = fmt::format("tokens {} to {}, probability {:.4f}", answer["first"].get<int>(),
                                answer["last"].get<int>(), p);
  if (answer.contains("answer"))
    out = fmt::format("\"{}\" ({})", answer["answer"].get<std::string>(), out);
  else
    out = "answer in " + out;
  return none > p ? fmt::format("{}; that there is none: {:.4f}", out, none) : out;
}

std::string readable_embedding(const std::vector<float>& embedding) {
  std::string out = fmt::format("embedding ({}),", embedding.size());
  constexpr size_t kShown = 4;
  for (size_t n = 0; n < std::min(kShown, embedding.size()); ++n)
    out += fmt::format(" {:.4f}", embedding[n]);
  return embedding.size() > kShown ? out + " ..." : out;
}

}  // namespace

ordered_json answer_of(const Results& results, size_t n, const Query& query, const ModelInfo& info,
                       const Words& words, const AnswerOptions& options) {
  const ModelOutput& out = results.out;
  const int64_t begin = out.offsets[n];
  ordered_json answer = {{"tokens", query.encoded.ids.size()}};
  if (query.encoded.cut > 0) answer["cut"] = query.encoded.cut;
  if (info.head == "base") {
    const auto row = row_of(results.embeddings.view(), static_cast<int64_t>(n));
    answer["embedding"] = std::vector<float>(row.begin(), row.end());
  } else if (info.head == "sequence_classification") {
    add_labels(row_of(out.logits.view(), static_cast<int64_t>(n)), info, options.labels, answer);
  } else if (info.head == "token_classification") {
    add_token_labels(out.logits.view(), begin, query, info, words, answer);
  } else if (info.head == "question_answering") {
    add_span(out, begin, query, options.max_answer, answer);
  } else if (info.head == "causal_lm" && query.from_text) {
    const auto row = row_of(out.logits.view(), out.offsets[n + 1] - 1);
    answer["next"] = guesses_of(row, words, options.top_k);
  } else {
    add_guesses(out.logits.view(), begin, query, words, options.top_k, answer);
  }
  return answer;
}

std::string readable(const ordered_json& answer, const Query& query, size_t number,
                     const AnswerOptions& options) {
  std::string out =
      fmt::format("{} {} ({} tokens{}): ", query.from_text ? "text" : "sequence", number,
                  answer["tokens"].get<int64_t>(),
                  query.encoded.cut > 0 ? fmt::format(", {} cut off", query.encoded.cut) : "");
  if (answer.contains("embedding"))
    return out + readable_embedding(answer["embedding"].get<std::vector<float>>());
  if (answer.contains("value")) return out + fmt::format("{:.6g}", answer["value"].get<float>());
  if (answer.contains("values")) return out + readable_values(answer["values"]);
  if (answer.contains("label")) return out + joined(answer["labels"], "label", options.top_k);
  if (answer.contains("labels")) return out + readable_token_labels(answer["labels"], query);
  if (answer.contains("no_answer")) return out + readable_span(answer);
  if (answer.contains("next"))
    return out + "next " + joined(answer["next"], "token", options.top_k);
  if (answer.contains("masks")) return out + readable_masks(answer["masks"], options.top_k);
  return out + fmt::format("{}", fmt::join(answer["best"].get<std::vector<int64_t>>(), " "));
}

}  // namespace locant::cli
