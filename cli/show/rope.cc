// RoPE: how pairs turn, their wavelengths, and how the score decays under every scaling.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "cli/show/pictures.h"
#include "cli/show/probe.h"
#include "locant/draw/heat_map.h"
#include "locant/draw/line_chart.h"
#include "locant/encodings/rope/rope.h"

namespace locant::cli {
namespace {

constexpr int64_t kTrained = 2048, kLonger = 8192;  // L0, and what the scalings are for

const std::vector<std::string> kScalings = {"none",   "linear",   "ntk",          "dynamic", "yarn",
                                            "llama3", "longrope", "proportional", "xpos"};

Rope make_rope(const Request& request, const std::string& scaling) {
  FieldValues fields = {{"factor", 4.0}, {"original_max_position", kTrained}};
  for (const auto& [name, value] : request.fields) fields[name] = value;
  fields["scaling"] = scaling;
  if (scaling == "none" || scaling == "xpos") fields.erase("factor");
  RopeConfig config = Rope::description().parse(fields);
  if (scaling == "longrope" && config.long_factor.empty()) {
    const auto pairs = static_cast<int64_t>(static_cast<double>(config.head_dim) *
                                            config.partial_rotary_factor / 2);
    for (int64_t t = 0; t < pairs; ++t) {
      config.short_factor.push_back(1);
      // Made up: from 1 for the fastest pair to s for the slowest, late.
      const double part = static_cast<double>(t + 1) / static_cast<double>(pairs);
      config.long_factor.push_back(1 + (config.factor - 1) * part * part);
    }
  }
  Rope rope(config);
  check_drawable(rope);
  return rope;
}

// cos(p·θ_t) for positions 0, ..., 127: the vector (1, 0) of each pair, turned. (128, pairs)
std::vector<double> cosines(const Rope& rope, int64_t positions) {
  const int64_t d = rope.config().head_dim, H = rope.config().heads;
  const auto pairs = static_cast<int64_t>(rope.frequencies(positions).theta.size());
  const bool half = rope.config().layout == "half";
  std::vector<double> x(H * positions * d);
  const auto column = [&](int64_t t) { return half ? t : 2 * t; };
  for (int64_t row = 0; row < H * positions; ++row)
    for (int64_t t = 0; t < pairs; ++t) x[row * d + column(t)] = 1;
  const View all = view(x.data(), {1, H, positions, d});
  rope.rotate(all, {}, all);
  std::vector<double> out;
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t t = 0; t < pairs; ++t) out.push_back(x[p * d + column(t)]);
  return out;
}

// <R(0) q, R(r) k>/sqrt(d) with q = k = 1 at every distance 0, ..., kLonger - 1, key behind query.
std::vector<double> decay(const Rope& rope) {
  const std::vector<double> ones(rope.config().head_dim, 1.0);
  std::vector<double> scores = scores_by_offset(rope, ones, ones, 1 - kLonger, 0).matrix("content");
  std::reverse(scores.begin(), scores.end());
  return scores;
}

Series thinned(const std::vector<double>& by_distance) {
  Series out;
  for (double r = 1; r < static_cast<double>(by_distance.size()); r = std::ceil(r * 1.08)) {
    out.x.push_back(r);
    out.y.push_back(by_distance[static_cast<size_t>(r)]);
  }
  return out;
}

}  // namespace

Figure draw_rope(const Request& request) {
  const Rope plain = make_rope(request, "none");
  constexpr int64_t kPositions = 128;
  const std::vector<double> turned = cosines(plain, kPositions);
  const auto pairs = static_cast<int64_t>(turned.size()) / kPositions;
  const HeatMap turns{.title = "cos(p·θₜ): fast pairs at the left",
                      .x_label = "pair t",
                      .y_label = "position p",
                      .rows = kPositions,
                      .columns = pairs,
                      .values = turned};
  LineChart single{
      .title = "four pairs over 128 positions", .x_label = "position p", .y_label = "cos(p·θₜ)"};
  for (const int64_t t : {0L, pairs / 8, pairs / 4, pairs / 2}) {
    Series series{.name = "t = " + std::to_string(t), .x = range(0, kPositions - 1), .y = {}};
    for (int64_t p = 0; p < kPositions; ++p) series.y.push_back(turned[p * pairs + t]);
    single.series.push_back(std::move(series));
  }

  LineChart angles{.title = "angle per position θ′ₜ",
                   .x_label = "pair t",
                   .y_label = "radians",
                   .y_logarithmic = true};
  LineChart waves{.title = "wavelength 2π/θ′ₜ",
                  .x_label = "pair t",
                  .y_label = "positions per turn",
                  .y_logarithmic = true};
  const std::vector<double> plain_decay = decay(plain);
  double most = 0;
  std::vector<LineChart> decays;
  for (const std::string& scaling : kScalings) {
    const Rope rope = make_rope(request, scaling);
    const RopeFrequencies frequencies = rope.frequencies(kLonger);
    Series angle{.name = scaling, .x = range(0, pairs - 1), .y = {}}, wave = angle;
    for (const double theta : frequencies.theta) {
      angle.y.push_back(theta);
      wave.y.push_back(theta > 0 ? 2 * std::numbers::pi / theta : NAN);
    }
    angle.x.resize(angle.y.size());
    wave.x.resize(wave.y.size());
    angles.series.push_back(std::move(angle));
    waves.series.push_back(std::move(wave));
    Series behind = thinned(plain_decay), line = thinned(decay(rope));
    behind.in_back = true;
    for (const double y : line.y) most = std::max(most, std::abs(y));
    decays.push_back({.title = scaling + ": score by distance",
                      .x_label = "distance",
                      .y_label = "⟨R q, R k⟩/√d",
                      .series = {},
                      .x_logarithmic = true,
                      .marks = {{static_cast<double>(kTrained), "L0"}},
                      .width = kThird,
                      .height = 210});
    if (scaling != "none") decays.back().series.push_back(std::move(behind));
    decays.back().series.push_back(std::move(line));
  }
  waves.series.push_back({.name = "L0",
                          .x = {0, static_cast<double>(pairs - 1)},
                          .y = {static_cast<double>(kTrained), static_cast<double>(kTrained)},
                          .in_back = true});
  Figure figure{
      .title = "rope",
      .lines =
          {"S = ⟨R(i)·q, R(j)·k⟩/√d,  pair t turns by p·θₜ,  θₜ = base^(−2t/rot):  the score knows "
           "pos(i) − pos(j) only",
           settings_text(plain, {"head_dim", "base"}) +
               ";  scalings from L0 = 2048 to 8192 (factor 4), longrope with made-up factors; "
               "below: q "
               "= k = (1, …, 1), grey: unscaled"},
      .panels = {draw(turns), draw(single), draw(angles), draw(waves)}};
  for (LineChart& chart : decays) {
    chart.y_axis = Axis{.low = -0.4 * most, .high = 1.05 * most};
    figure.panels.push_back(draw(chart));
  }
  return figure;
}

}  // namespace locant::cli
