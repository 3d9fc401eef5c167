// Transformer-XL and XLNet: sinusoids of the distance, and the vectors u, v, s.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"

namespace locant::cli {
namespace {

// Parameters of a size that shows: vectors of variance 1, W_R of variance 1/d_model.
class Weights {
 public:
  Weights(Encoding& encoding, const std::string& r_net) : encoding_(encoding) {
    for (const Parameter& parameter : encoding.parameters()) {
      int64_t size = 1;
      for (const int64_t extent : parameter.shape) size *= extent;
      values_.push_back(random_values(size, 10 + values_.size()));
      if (values_.back().size() > zeros_.size()) zeros_.resize(values_.back().size());
      if (parameter.name == r_net)
        for (double& value : values_.back())
          value /= std::sqrt(static_cast<double>(parameter.fan_in));
    }
    set({});
  }

  // All of them, but zeros for those named.
  void set(const std::vector<std::string>& zero) {
    for (size_t n = 0; n < values_.size(); ++n) {
      const Parameter& parameter = encoding_.parameters()[n];
      const bool none = std::find(zero.begin(), zero.end(), parameter.name) != zero.end();
      encoding_.set(parameter.name, ConstView(none ? zeros_.data() : values_[n].data(), DType::f64,
                                              parameter.shape));
    }
  }

 private:
  Encoding& encoding_;
  std::vector<std::vector<double>> values_;
  std::vector<double> zeros_;
};

// Row c of the answer: column c of R at distances 0, 1, ... With W_R = 1 and v = 0 the score of the
// query e_c is R_r[c]/sqrt(d).
HeatMap sinusoids(Encoding& encoding, const char* r_net) {
  constexpr int64_t kDistances = 96;
  const int64_t d = integer(encoding, "head_dim");
  std::vector<double> identity(d * d);
  for (int64_t n = 0; n < d; ++n) identity[n * d + n] = 1;
  const std::vector<double> zeros(d);
  for (const Parameter& parameter : encoding.parameters())
    if (parameter.name == r_net)
      encoding.set(r_net, ConstView(identity.data(), DType::f64, parameter.shape));
    else if (parameter.name == "r_r_bias")
      encoding.set("r_r_bias", ConstView(zeros.data(), DType::f64, parameter.shape));
  HeatMap map{.title = "R: a sinusoid for each distance",
              .x_label = "column",
              .y_label = "distance r = pos(i) − pos(j)",
              .rows = kDistances,
              .columns = d,
              .values = std::vector<double>(kDistances * d)};
  AttendOptions options;
  options.scale = 1;
  for (int64_t c = 0; c < d; ++c) {
    std::vector<double> unit(d);
    unit[c] = 1;
    const std::vector<double> column =
        scores_by_offset(encoding, unit, zeros, 1 - kDistances, 0, options).matrix("position");
    for (int64_t r = 0; r < kDistances; ++r) map.values[r * d + c] = column[kDistances - 1 - r];
  }
  return map;
}

HeatMap term_matrix(const Scores& scores, const std::string& term, std::string title) {
  return {.title = std::move(title),
          .x_label = "key j",
          .y_label = "query i",
          .rows = scores.q_len,
          .columns = scores.k_len,
          .values = scores.matrix(term)};
}

}  // namespace

Figure draw_transformer_xl(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {});
  Request one_head = request;  // d_model = d: the identity projects
  one_head.fields["heads"] = int64_t{1};
  one_head.fields["d_model"] = int64_t{0};
  const HeatMap table = sinusoids(*make(one_head, {}), "r_net");
  const int64_t H = integer(*encoding, "heads"), d = integer(*encoding, "head_dim");
  Weights weights(*encoding, "r_net");
  const std::vector<double> q = random_values(d, 1), k = random_values(d, 2), zeros(d);

  // The paper's four terms: what is left when u, v or the query is zero.
  constexpr int64_t kFarthest = 128;
  const std::vector<double> distances = range(0, kFarthest);
  const auto by_distance = [&](const std::vector<double>& query, const char* term) {
    std::vector<double> out = scores_by_offset(*encoding, query, k, -kFarthest, 0).matrix(term);
    std::reverse(out.begin(), out.end());
    return out;
  };
  LineChart four{.title = "the four terms for one query and one key",
                 .x_label = "distance r = pos(i) − pos(j)",
                 .y_label = "score"};
  weights.set({"r_w_bias", "r_r_bias"});
  four.series.push_back({.name = "⟨q, k⟩", .x = distances, .y = by_distance(q, "content")});
  four.series.push_back({.name = "⟨q, W·R⟩", .x = distances, .y = by_distance(q, "position")});
  weights.set({});
  four.series.push_back({.name = "⟨u, k⟩", .x = distances, .y = by_distance(zeros, "content")});
  four.series.push_back({.name = "⟨v, W·R⟩", .x = distances, .y = by_distance(zeros, "position")});

  constexpr int64_t kMemory = 16, kQueries = 32;
  AttendOptions options;
  options.causal = true;
  options.q_start = kMemory;
  const Scores scores = scores_of(*encoding, random_values(H * kQueries * d, 3),
                                  random_values(H * (kMemory + kQueries) * d, 4), options);
  return {
      .title = "transformer_xl",
      .lines = {"S = (⟨q + u, k⟩ + ⟨q + v, W·Rᵣ⟩)/√d,  r = pos(i) − pos(j);  all terms share one "
                "1/√d",
                settings_text(*encoding, {"head_dim", "clamp_len"}) +
                    ", random weights; 16 keys of memory come before the queries"},
      .panels = {draw(table), draw(four),
                 draw(term_matrix(scores, "content", "content: ⟨q + u, k⟩/√d")),
                 draw(term_matrix(scores, "position", "position: ⟨q + v, W·Rᵣ⟩/√d"))}};
}

Figure draw_xlnet(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {});
  const int64_t H = integer(*encoding, "heads"), d = integer(*encoding, "head_dim");
  Weights weights(*encoding, "r");
  constexpr int64_t kReach = 64;
  LineChart lines{.title = "position: ⟨q + v, W·Rᵣ⟩/√d for three queries",
                  .x_label = "r = pos(i) − pos(j);  r < 0: the key is ahead",
                  .y_label = "score"};
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<double> scores =
        scores_by_offset(*encoding, random_values(d, seed), std::vector<double>(d), -kReach, kReach)
            .matrix("position");
    std::reverse(scores.begin(), scores.end());
    lines.series.push_back(
        {.name = fmt::format("q{}", seed), .x = range(-kReach, kReach), .y = std::move(scores)});
  }
  constexpr int64_t kTokens = 32, kFirstSegment = 12;
  std::vector<int64_t> segments(kTokens, 0);
  std::fill(segments.begin() + kFirstSegment, segments.end(), 1);
  AttendOptions options;
  options.q_segments = options.k_segments =
      view(static_cast<const int64_t*>(segments.data()), {1, kTokens});
  const Scores scores = scores_of(*encoding, random_values(H * kTokens * d, 3),
                                  random_values(H * kTokens * d, 4), options);
  return {
      .title = "xlnet",
      .lines = {"S = (⟨q + u, k⟩ + ⟨q + v, W·Rᵣ⟩ + ⟨q + s, seg[x]⟩)/√d,  x = 0 for keys of the "
                "query’s own segment, else 1",
                settings_text(*encoding, {"head_dim", "clamp_len", "attn_type"}) +
                    ", random weights; tokens 0–11 are segment A, 12–31 segment B"},
      .panels = {draw(lines), draw(term_matrix(scores, "content", "content: ⟨q + u, k⟩/√d")),
                 draw(term_matrix(scores, "position", "position: ⟨q + v, W·Rᵣ⟩/√d")),
                 draw(term_matrix(scores, "segment", "segment: two numbers per query, A and B"))}};
}

}  // namespace locant::cli
