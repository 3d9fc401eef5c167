// Values as colours, and the scale that says which.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "locant/draw/axis.h"
#include "locant/draw/canvas.h"
#include "locant/draw/colours.h"

namespace locant::inline v0 {

// Values from low to high, evenly. Signed values have white at 0.
struct Shades {
  Axis range;
  bool is_signed = false;

  Colour colour(double value) const;
  std::vector<Colour> palette() const;
  uint8_t index(double value) const;  // into the palette; NaN: kTransparent of png.h
};

// Those that hold the values. `largest` is where colours end instead.
Shades shades_of(const std::vector<double>& values, bool is_signed, std::optional<double> largest);

// The scale: upright, its numbers at the right.
void draw_scale(const Shades& shades, double x, double y, double height, Canvas& canvas);

// The same in one line that ends at `right`: the smallest value, colours, the largest.
void draw_lying_scale(const Shades& shades, double right, double y, Canvas& canvas);

}  // namespace locant::inline v0
