#include "locant/draw/line_chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace locant::inline v0 {
namespace {

constexpr double kTop = 30, kBottom = 46, kLeft = 58, kLegendLine = 18;

// The width of words in the style sheet's 12 px font, about.
double width_of(const std::string& words) {
  const auto letters = std::count_if(words.begin(), words.end(),
                                     [](char c) { return (c & 0xc0) != 0x80; });  // of UTF-8
  return 6.9 * static_cast<double>(letters);
}

struct Frame {
  double left, top, width, height;
  Axis x, y;
  double at_x(double value) const { return left + width * x.part(value); }
  double at_y(double value) const { return top + height * (1 - y.part(value)); }
};

void draw_axes(const LineChart& chart, const Frame& frame, Canvas& canvas) {
  const double right = frame.left + frame.width, bottom = frame.top + frame.height;
  for (const auto& [value, words] : frame.y.ticks(5)) {
    const double y = frame.at_y(value);
    canvas.line(frame.left, y, right, y, "grid");
    canvas.text(frame.left - 6, y + 4, words, "e");
  }
  const int count = std::max(2, static_cast<int>(frame.width / 50));
  for (const auto& [value, words] : frame.x.ticks(count)) {
    const double x = frame.at_x(value);
    canvas.line(x, bottom, x, bottom + 4, "axis");
    canvas.text(x, bottom + 17, words, "m");
  }
  for (const auto& [value, words] : chart.marks) {
    const double x = frame.at_x(value);
    canvas.line(x, frame.top, x, bottom, "axis dash");
    const bool room = x + width_of(words) + 6 < right;
    canvas.text(room ? x + 4 : x - 4, frame.top + 12, words, room ? "q" : "q e");
  }
  canvas.line(frame.left, bottom, right, bottom, "axis");
  canvas.line(frame.left, frame.top, frame.left, bottom, "axis");
  canvas.text(frame.left + frame.width / 2, bottom + 37, chart.x_label, "m");
  canvas.upward_text(13, frame.top + frame.height / 2, chart.y_label);
}

// "w c3", and dashes for the second round through the palette.
std::string classes_of(const Series& series, int colour) {
  std::string classes = "back";
  if (series.in_back) return classes;
  classes = "w c";
  classes += std::to_string(colour % kLineColours);
  return colour >= kLineColours ? classes + " dash" : classes;
}

void draw_series(const Series& series, int colour, const Frame& frame, Canvas& canvas) {
  const std::string classes = classes_of(series, colour);
  std::vector<std::pair<double, double>> points;
  for (size_t n = 0; n < series.x.size(); ++n) {
    const bool drawn = std::isfinite(series.y[n]) && !(frame.y.logarithmic && series.y[n] <= 0);
    if (drawn && series.dots)
      canvas.dot(frame.at_x(series.x[n]), frame.at_y(series.y[n]), 2.6,
                 "fc" + std::to_string(colour % kLineColours));
    else if (drawn)
      points.emplace_back(frame.at_x(series.x[n]), frame.at_y(series.y[n]));
    else  // a gap
      canvas.path(std::exchange(points, {}), classes);
  }
  canvas.path(points, classes);
}

}  // namespace

Panel draw(const LineChart& chart) {
  std::vector<double> all_x, all_y;
  double legend = 0;
  for (const Series& series : chart.series) {
    all_x.insert(all_x.end(), series.x.begin(), series.x.end());
    all_y.insert(all_y.end(), series.y.begin(), series.y.end());
    if (!series.name.empty()) legend = std::max(legend, width_of(series.name) + 34);
  }
  Frame frame{.left = kLeft,
              .top = kTop,
              .width = chart.width - kLeft - std::max(legend, 14.0),
              .height = chart.height - kTop - kBottom,
              .x = axis_around(all_x, chart.x_logarithmic),
              .y = chart.y_axis.value_or(axis_around(all_y, chart.y_logarithmic))};
  if (!chart.y_axis && !chart.y_logarithmic) {  // lines do not run along the frame
    const double room = 0.04 * (frame.y.high - frame.y.low);
    frame.y.low -= room;
    frame.y.high += room;
  }

  Panel panel{.width = chart.width, .height = chart.height, .canvas = {}};
  panel.canvas.text(0, 14, chart.title, "h");
  draw_axes(chart, frame, panel.canvas);
  int next = 0;
  double legend_y = frame.top + 8;
  for (const Series& series : chart.series) {
    const int colour = series.in_back ? 0 : series.colour >= 0 ? series.colour : next++;
    draw_series(series, colour, frame, panel.canvas);
    if (series.name.empty()) continue;
    const double x = frame.left + frame.width + 8;
    if (series.dots)
      panel.canvas.dot(x + 9, legend_y, 2.6, "fc" + std::to_string(colour % kLineColours));
    else
      panel.canvas.line(x, legend_y, x + 18, legend_y, classes_of(series, colour));
    panel.canvas.text(x + 23, legend_y + 4, series.name);
    legend_y += kLegendLine;
  }
  return panel;
}

}  // namespace locant::inline v0
