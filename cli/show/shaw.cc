// Shaw: clipped distances choose rows of a table.
#include <fmt/core.h>

#include <algorithm>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"

namespace locant::cli {

Figure draw_shaw(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"max_distance", int64_t{4}}});
  const int64_t k = integer(*encoding, "max_distance"), H = integer(*encoding, "heads");
  const int64_t d = integer(*encoding, "head_dim");
  const bool clips = flag(*encoding, "clip");
  const auto within = [&](int64_t reach) { return clips ? reach : std::min(reach, k); };
  const bool per_head = flag(*encoding, "per_head");
  const std::vector<double> table = smooth_rows((per_head ? H : 1) * (2 * k + 1), d, 7);
  const ConstView keys =
      per_head ? view(table.data(), {H, 2 * k + 1, d}) : view(table.data(), {2 * k + 1, d});
  encoding->set("keys", keys);

  const int64_t reach = within(std::min<int64_t>(3 * k, 1024));
  const LineChart rows{.title = "row of the table by offset",
                       .x_label = "offset pos(j) − pos(i)",
                       .y_label = "row",
                       .series = {{.x = range(-reach, reach),
                                   .y = rows_by_offset(*encoding, "keys", keys, -reach, reach),
                                   .dots = true}}};
  const int64_t few = within(7) + 1, many = within(31) + 1;
  const NumberMatrix numbers{
      .title = "row for each pair",
      .x_label = "key j",
      .y_label = "query i",
      .rows = few,
      .columns = few,
      .values = by_pair(rows_by_offset(*encoding, "keys", keys, 1 - few, few - 1), few)};

  LineChart lines{.title = "⟨qᵢ, keys[row]⟩/√d for three queries",
                  .x_label = "offset pos(j) − pos(i)",
                  .y_label = "score"};
  for (const uint64_t seed : {1, 2, 3})
    lines.series.push_back({.name = fmt::format("q{}", seed),
                            .x = range(-reach, reach),
                            .y = scores_by_offset(*encoding, random_values(d, seed),
                                                  std::vector<double>(d), -reach, reach)
                                     .matrix("keys")});
  const std::vector<double> q = random_values(H * many * d, 4);
  const HeatMap matrix{.title = fmt::format("the same for {} queries: far keys share a row", many),
                       .x_label = "key j",
                       .y_label = "query i",
                       .rows = many,
                       .columns = many,
                       .values = scores_of(*encoding, q, q).matrix("keys")};
  return {
      .title = "shaw",
      .lines = {"S = (⟨qᵢ, kⱼ⟩ + ⟨qᵢ, keys[row]⟩)/√d,  O = Σⱼ P·(vⱼ + values[row]),  row = clip(δ, "
                "−k, k) + k,  δ = pos(j) − pos(i)",
                settings_text(*encoding, {"max_distance", "clip", "reversed"}) +
                    ", a random table that is smooth along its rows"},
      .panels = {draw(rows), draw(numbers), draw(lines), draw(matrix)}};
}

}  // namespace locant::cli
