// Encodings that are added to the input: their vectors, and what two positions say to each other.
#include <algorithm>
#include <numeric>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"
#include "locant/layers/analysis.h"

namespace locant::cli {
namespace {

// Rows 0, 1, ..., whatever padding_idx says.
std::vector<int64_t> first_rows(int64_t count) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// PE (positions, D): what the encoding adds to zeros.
std::vector<double> vectors_of(const Encoding& encoding, int64_t positions) {
  const std::vector<int64_t> rows = first_rows(positions);
  const int64_t D = encoding.embed_dim();
  std::vector<double> x(positions * D);
  const View all = view(x.data(), {1, positions, D});
  encoding.embed(all, {.positions = view(rows.data(), {1, positions})}, all);
  return x;
}

Panel draw_vectors(const Encoding& encoding, int64_t positions, const char* title) {
  return draw(HeatMap{.title = title,
                      .x_label = "column of the vector",
                      .y_label = "position p",
                      .rows = positions,
                      .columns = encoding.embed_dim(),
                      .values = vectors_of(encoding, positions),
                      .height = 340});
}

// The position-position part of head 0's score, with W_q = W_k = 1.
Panel draw_meetings(const Encoding& encoding, int64_t positions, const char* title) {
  const int64_t D = encoding.embed_dim();
  const int64_t columns = integer(encoding, "heads") * integer(encoding, "head_dim");
  std::vector<double> identity(columns * D), x(positions * D);
  for (int64_t n = 0; n < std::min(columns, D); ++n) identity[n * D + n] = 1;
  const std::vector<int64_t> rows = first_rows(positions);
  AbsoluteScoresOptions options;
  options.query.positions = options.key.positions = view(rows.data(), {1, positions});
  const ConstView zeros = view(x.data(), {1, positions, D});
  const ConstView w = view(identity.data(), {columns, D});
  std::vector<double> parts =
      absolute_scores(zeros, zeros, encoding, w, w, options).position_position;
  parts.resize(positions * positions);
  return draw(HeatMap{.title = title,
                      .x_label = "key's position",
                      .y_label = "query's position",
                      .rows = positions,
                      .columns = positions,
                      .values = std::move(parts),
                      .height = 340});
}

}  // namespace

Figure draw_sinusoidal(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {});
  constexpr int64_t kPositions = 128;
  const int64_t D = encoding->embed_dim();
  const std::vector<double> pe = vectors_of(*encoding, kPositions);

  LineChart columns{.title = "single columns over 128 positions",
                    .x_label = "position p",
                    .y_label = "PE[p, column]"};
  for (const int64_t column : {2, 6, 12}) {
    if (column >= D) continue;
    Series series{
        .name = "column " + std::to_string(column), .x = range(0, kPositions - 1), .y = {}};
    for (int64_t p = 0; p < kPositions; ++p) series.y.push_back(pe[p * D + column]);
    columns.series.push_back(std::move(series));
  }
  LineChart rows{.title = "the vectors of positions 1 and 5",
                 .x_label = "column of the vector",
                 .y_label = "PE[p, column]"};
  for (const int64_t p : {1, 5})
    rows.series.push_back({.name = "p = " + std::to_string(p),
                           .x = range(0, D - 1),
                           .y = {pe.begin() + p * D, pe.begin() + (p + 1) * D},
                           .dots = true});
  return {
      .title = "sinusoidal",
      .lines = {"x + PE[p],  PE[p, 2i] = sin(p·θᵢ),  PE[p, 2i+1] = cos(p·θᵢ),  θᵢ = "
                "base^(−2i/D)",
                "D = " + std::to_string(D) + ", " + settings_text(*encoding, {"layout", "base"})},
      .panels = {draw_vectors(*encoding, kPositions, "PE: a row for each position"),
                 draw_meetings(*encoding, 64, "⟨PE[i], PE[j]⟩/√d: near positions agree"),
                 draw(columns), draw(rows)}};
}

Figure draw_learned(const Request& request) {
  const std::unique_ptr<Encoding> encoding = make(request, {{"max_len", int64_t{64}}});
  const int64_t positions = std::min<int64_t>(64, integer(*encoding, "max_len"));
  return {.title = "learned",
          .lines = {"x + table[p]: a vector for each position up to max_len, and none beyond",
                    settings_text(*encoding, {"max_len"}) + ", a random table, as before training"},
          .panels = {draw_vectors(*encoding, positions, "table: a row for each position"),
                     draw_meetings(*encoding, positions,
                                   "⟨table[i], table[j]⟩/√d: 3 is no nearer to 4 than to 40")}};
}

}  // namespace locant::cli
