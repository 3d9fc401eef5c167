// DeBERTa: which slot an offset takes, and the four products of content and position.
#include <algorithm>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"

namespace locant::cli {
namespace {

// An encoding with tables that are smooth along their rows.
struct Drawn {
  std::unique_ptr<Encoding> encoding;
  std::vector<double> pos_key, pos_query;

  explicit Drawn(const Request& request, const FieldValues& usual)
      : encoding(make(request, usual)) {
    for (const Parameter& parameter : encoding->parameters()) {
      const int64_t rows = parameter.shape[0] * parameter.shape[1], d = parameter.shape[2];
      const bool key = parameter.name == "pos_key";
      std::vector<double>& values = key ? pos_key : pos_query;
      values = smooth_rows(rows, d, key ? 21 : 22);
      encoding->set(parameter.name, ConstView(values.data(), DType::f64, parameter.shape));
    }
  }

  std::vector<double> slots(int64_t first, int64_t last) const {
    const bool c2p = flag(*encoding, "c2p");
    return rows_by_offset(*encoding, c2p ? "c2p" : "p2c",
                          encoding->parameter(c2p ? "pos_key" : "pos_query"), first, last);
  }
};

// Slots by r = pos(i) - pos(j), from -reach to reach.
Series slot_series(const Drawn& drawn, const char* name, int64_t reach) {
  Series series{.name = name, .x = range(-reach, reach), .y = drawn.slots(-reach, reach)};
  std::reverse(series.y.begin(), series.y.end());
  return series;
}

}  // namespace

Figure draw_deberta(const Request& request) {
  const Drawn released(request, {});
  Request exact_request = request;
  exact_request.fields["position_buckets"] = int64_t{0};
  const Drawn exact(exact_request, {});
  // Small enough that buckets can be seen.
  const Drawn small(
      request,
      {{"position_buckets", int64_t{16}}, {"max_relative_positions", int64_t{48}}, {"p2p", true}});
  const Encoding& encoding = *small.encoding;
  const int64_t H = integer(encoding, "heads"), d = integer(encoding, "head_dim");
  const int64_t M = std::min<int64_t>(integer(*released.encoding, "max_relative_positions"), 4096);

  LineChart slots{
      .title = "slot by distance, " + settings_text(*released.encoding, {"position_buckets"}),
      .x_label = "r = pos(i) − pos(j)",
      .y_label = "slot",
      .series = {slot_series(exact, "exact (v1)", M + M / 4),
                 slot_series(released, "log (v2, v3)", M + M / 4)}};
  constexpr int64_t kLength = 48;
  const HeatMap slot_matrix{.title = "slot of each pair",
                            .x_label = "key j",
                            .y_label = "query i",
                            .rows = kLength,
                            .columns = kLength,
                            .values = by_pair(small.slots(1 - kLength, kLength - 1), kLength),
                            .is_signed = false};

  const std::vector<double> q = random_values(d, 1), k = random_values(d, 2);
  const Scores by_offset = scores_by_offset(encoding, q, k, -64, 64);
  LineChart terms{.title = "the terms for one query and one key",
                  .x_label = "offset pos(j) − pos(i)",
                  .y_label = "score"};
  std::vector<std::string> names;  // those that are on, in the paper's order
  for (const char* name : {"content", "c2p", "p2c", "p2p"})
    if (by_offset.has(name)) names.push_back(name);
  for (const std::string& name : names)
    terms.series.push_back({.name = name, .x = range(-64, 64), .y = by_offset.matrix(name)});

  const Scores scores =
      scores_of(encoding, random_values(H * kLength * d, 3), random_values(H * kLength * d, 4));
  Figure figure{
      .title = "deberta",
      .lines = {"S = s·(⟨qᵢ, kⱼ⟩ + ⟨qᵢ, PK[x]⟩ + ⟨kⱼ, PQ[x]⟩ + ⟨PQ[x], PK[x]⟩),  x = slot(pos(i) − "
                "pos(j)):  content, c2p, p2c, p2p",
                "after the first panel: " +
                    settings_text(encoding, {"position_buckets", "max_relative_positions"}) +
                    ", random tables that are smooth along their rows"},
      .panels = {draw(slots), draw(terms)}};
  HeatMap first = slot_matrix;
  first.width = kThird;
  first.height = 250;
  figure.panels.push_back(draw(first));
  std::vector<double> sum(kLength * kLength);
  const auto add = [&](const std::string& title, std::vector<double> values) {
    figure.panels.push_back(draw(HeatMap{.title = title,
                                         .x_label = "key j",
                                         .y_label = "query i",
                                         .rows = kLength,
                                         .columns = kLength,
                                         .values = std::move(values),
                                         .width = kThird,
                                         .height = 250}));
  };
  for (const std::string& name : names) {
    const std::vector<double> matrix = scores.matrix(name);
    for (size_t n = 0; n < sum.size(); ++n) sum[n] += matrix[n];
    add(name, matrix);
  }
  add("the sum: S", sum);
  return figure;
}

}  // namespace locant::cli
