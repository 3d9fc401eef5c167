// An axis: numbers to pixels, and the round numbers that are written beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace locant::inline v0 {

struct Axis {
  double low = 0, high = 1;  // low < high; with `logarithmic` both > 0
  bool logarithmic = false;

  // Where a value stands: 0 at low, 1 at high.
  double part(double value) const;

  // About `count` round numbers from low to high, with their words; powers of ten if logarithmic.
  std::vector<std::pair<double, std::string>> ticks(int count) const;
};

// The axis that holds the finite ones of these values, not narrower than a point.
Axis axis_around(const std::vector<double>& values, bool logarithmic = false);

}  // namespace locant::inline v0
