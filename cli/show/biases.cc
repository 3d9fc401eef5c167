// Encodings that add a number per head and offset: T5, ALiBi, KERPLE.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"

namespace locant::cli {
namespace {

constexpr int64_t kMostHeads = 8;  // more lines than that cannot be told apart

std::vector<double> biases_of(const Encoding& encoding, int64_t head, int64_t first, int64_t last) {
  const std::vector<double> zeros(integer(encoding, "head_dim"));
  return scores_by_offset(encoding, zeros, zeros, first, last).matrix("bias", head);
}

LineChart bias_lines(const Encoding& encoding, int64_t first, int64_t last, std::string title) {
  LineChart chart{.title = std::move(title),
                  .x_label = "offset pos(j) − pos(i)",
                  .y_label = "added to the score"};
  for (int64_t h = 0; h < std::min(kMostHeads, integer(encoding, "heads")); ++h)
    chart.series.push_back({.name = "head " + std::to_string(h),
                            .x = range(first, last),
                            .y = biases_of(encoding, h, first, last)});
  return chart;
}

// What the softmax makes of the bias alone: every <q, k> is 0.
LineChart weight_lines(const Encoding& encoding, int64_t farthest) {
  LineChart chart{.title = "weight of a key if all ⟨q, k⟩ are equal",
                  .x_label = "distance (keys behind the query)",
                  .y_label = "probability",
                  .y_logarithmic = true};
  const std::vector<double> zeros(integer(encoding, "head_dim"));
  const Scores scores = scores_by_offset(encoding, zeros, zeros, -farthest, 0);
  for (int64_t h = 0; h < std::min(kMostHeads, scores.heads); ++h) {
    std::vector<double> weights = scores.probability_matrix(h);
    std::reverse(weights.begin(), weights.end());
    chart.series.push_back(
        {.name = "head " + std::to_string(h), .x = range(0, farthest), .y = std::move(weights)});
  }
  chart.y_axis = Axis{.low = 1e-6, .high = 1, .logarithmic = true};
  for (Series& series : chart.series)
    for (double& y : series.y)
      if (y < chart.y_axis->low) y = NAN;
  return chart;
}

HeatMap bias_matrix(const Encoding& encoding, int64_t head, std::string title) {
  constexpr int64_t kLength = 48;
  return {.title = std::move(title),
          .x_label = "key j",
          .y_label = "query i",
          .rows = kLength,
          .columns = kLength,
          .values = by_pair(biases_of(encoding, head, 1 - kLength, kLength - 1), kLength),
          .is_signed = false};
}

}  // namespace

Figure draw_t5(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"heads", int64_t{4}}});
  const int64_t H = integer(*encoding, "heads"), rows = integer(*encoding, "num_buckets");
  const int64_t farthest = integer(*encoding, "max_distance");
  const std::vector<double> table = smooth_rows(rows, H, 5);
  encoding->set("bias", view(table.data(), {rows, H}));
  // A table whose numbers are their own rows: then the bias is the bucket.
  const std::unique_ptr<Encoding> buckets = make(request, {{"heads", int64_t{4}}});
  std::vector<double> own_row(rows * H);
  for (int64_t n = 0; n < rows * H; ++n) own_row[n] = static_cast<double>(n / H);
  buckets->set("bias", view(static_cast<const double*>(own_row.data()), {rows, H}));

  // Far buckets of a very long table are too narrow to see.
  const int64_t reach = std::min<int64_t>(farthest + farthest / 4, 2048);
  std::vector<std::pair<double, std::string>> ends;
  if (farthest <= reach) {
    ends.emplace_back(-farthest, "max_distance");
    if (flag(*encoding, "bidirectional")) ends.emplace_back(farthest, "");
  }
  const LineChart by_offset{
      .title = "bucket by offset",
      .x_label = "offset pos(j) − pos(i)",
      .y_label = "bucket",
      .series = {{.x = range(-reach, reach), .y = biases_of(*buckets, 0, -reach, reach)}},
      .marks = ends};
  constexpr int64_t kFew = 12, kMany = 96;
  const NumberMatrix numbers{.title = "bucket of each pair, 12 tokens",
                             .x_label = "key j",
                             .y_label = "query i",
                             .rows = kFew,
                             .columns = kFew,
                             .values = by_pair(biases_of(*buckets, 0, 1 - kFew, kFew - 1), kFew)};
  const HeatMap matrix{.title = "bucket of each pair, 96 tokens",
                       .x_label = "key j",
                       .y_label = "query i",
                       .rows = kMany,
                       .columns = kMany,
                       .values = by_pair(biases_of(*buckets, 0, 1 - kMany, kMany - 1), kMany),
                       .is_signed = false};
  return {.title = "t5",
          .lines = {"S = c·⟨q, k⟩ + bias[bucket(δ), head],  δ = pos(j) − pos(i): near offsets have "
                    "a bucket each, far ones share",
                    settings_text(*encoding, {"num_buckets", "max_distance", "bidirectional"})},
          .panels = {
              draw(by_offset), draw(numbers), draw(matrix),
              draw(bias_lines(*encoding, -reach, reach, "bias by offset, a random smooth table"))}};
}

Figure draw_alibi(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"heads", int64_t{8}}});
  const int64_t H = integer(*encoding, "heads");
  LineChart slopes{.title = "slope of each head",
                   .x_label = "head",
                   .y_label = "slope",
                   .series = {{.x = range(0, H - 1), .y = {}, .dots = true}},
                   .y_logarithmic = true};
  for (int64_t h = 0; h < H; ++h) slopes.series[0].y.push_back(-biases_of(*encoding, h, -1, 0)[0]);
  const int64_t middle = std::min<int64_t>(3, H - 1);
  return {
      .title = "alibi",
      .lines = {"S = ⟨q, k⟩/√d − slope[head]·|pos(j) − pos(i)|: nothing is learned, near keys "
                "weigh more",
                settings_text(*encoding, {"heads"})},
      .panels = {draw(bias_lines(*encoding, -64, 64, "bias by offset")),
                 draw(weight_lines(*encoding, 256)), draw(slopes),
                 draw(bias_matrix(*encoding, middle, "bias of head " + std::to_string(middle)))}};
}

Figure draw_kerple(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"heads", int64_t{4}}});
  const int64_t H = integer(*encoding, "heads");
  std::vector<double> r1, r2;
  for (int64_t h = 0; h < H; ++h) {
    r1.push_back(std::ldexp(0.5, static_cast<int>(h % kMostHeads)));
    r2.push_back(std::ldexp(2, -static_cast<int>(h % kMostHeads)));
  }
  encoding->set("r1", view(static_cast<const double*>(r1.data()), {H}));
  encoding->set("r2", view(static_cast<const double*>(r2.data()), {H}));
  LineChart far = bias_lines(*encoding, -4096, -1, "the same by distance: straight lines at last");
  for (Series& series : far.series) {  // every distance near by, then fewer and fewer
    Series thin{.name = series.name, .x = {}, .y = {}};
    for (double distance = 1; distance <= 4096; distance = std::ceil(distance * 1.08)) {
      thin.x.push_back(distance);
      thin.y.push_back(series.y[series.y.size() - static_cast<size_t>(distance)]);
    }
    series = std::move(thin);
  }
  far.x_label = "distance |pos(j) − pos(i)|";
  far.x_logarithmic = true;
  const int64_t middle = std::min<int64_t>(2, H - 1);
  return {
      .title = "kerple",
      .lines = {"S = ⟨q, k⟩/√d − r1[head]·ln(1 + r2[head]·|pos(j) − pos(i)|): like alibi, but "
                "learned, and far keys are not forgotten",
                "drawn with r1 = 0.5·2^head and r2 = 2/2^head: 0.5, 1, 2 … and 2, 1, 0.5 …"},
      .panels = {draw(bias_lines(*encoding, -64, 64, "bias by offset")), draw(far),
                 draw(weight_lines(*encoding, 256)),
                 draw(bias_matrix(*encoding, middle, "bias of head " + std::to_string(middle)))}};
}

}  // namespace locant::cli
