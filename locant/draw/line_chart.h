// Lines over a common axis, with a legend at the right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "locant/draw/axis.h"
#include "locant/draw/figure.h"

namespace locant::inline v0 {

struct Series {
  std::string name = {};  // empty: not in the legend
  std::vector<double> x = {}, y = {};
  int colour = -1;       // of the palette; -1: the next one
  bool dots = false;     // a dot per point instead of a line
  bool in_back = false;  // grey, thin: something to compare with
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Series> series = {};
  bool x_logarithmic = false, y_logarithmic = false;
  std::optional<Axis> y_axis = {};                         // instead of what the values need
  std::vector<std::pair<double, std::string>> marks = {};  // upright lines at some x, with a word
  double width = kHalf, height = 300;
};

Panel draw(const LineChart& chart);

}  // namespace locant::inline v0
