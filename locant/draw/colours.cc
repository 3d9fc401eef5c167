#include "locant/draw/colours.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace locant::inline v0 {
namespace {

// Ten points of viridis (Smith and van der Walt 2015), evenly spaced.
constexpr Colour kSequential[] = {{68, 1, 84},    {72, 40, 120},  {62, 73, 137},  {49, 104, 142},
                                  {38, 130, 142}, {31, 158, 137}, {53, 183, 121}, {110, 206, 88},
                                  {181, 222, 43}, {253, 231, 37}};

// ColorBrewer's RdBu (Brewer 2003), nine classes from blue to red.
constexpr Colour kDiverging[] = {{33, 102, 172},  {67, 147, 195},  {146, 197, 222},
                                 {209, 229, 240}, {247, 247, 247}, {253, 219, 199},
                                 {244, 165, 130}, {214, 96, 77},   {178, 24, 43}};

Colour between(std::span<const Colour> points, double t) {
  const auto last = static_cast<double>(points.size() - 1);
  const double at = std::clamp(t, 0.0, 1.0) * last;
  const auto below = static_cast<size_t>(std::min(std::floor(at), last - 1));
  const double part = at - static_cast<double>(below);
  const auto mix = [&](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(std::lround(a + part * (b - a)));
  };
  const Colour &a = points[below], &b = points[below + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace

Colour sequential_colour(double t) {
  return between(kSequential, t);
}

Colour diverging_colour(double t) {
  return between(kDiverging, t);
}

std::string hex_text(const Colour& colour) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "#";
  for (const uint8_t part : {colour.red, colour.green, colour.blue}) {
    text += kDigits[part / 16];
    text += kDigits[part % 16];
  }
  return text;
}

bool is_bright(const Colour& colour) {
  return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue > 140;
}

}  // namespace locant::inline v0
