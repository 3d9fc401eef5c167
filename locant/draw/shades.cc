#include "locant/draw/shades.h"

#include <algorithm>
#include <cmath>

#include "locant/draw/png.h"
#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

constexpr int kShades = 255, kSteps = 64;
constexpr double kThick = 12;

std::vector<std::pair<double, std::string>> scale_ticks(const Shades& shades) {
  auto ticks = shades.range.ticks(4);
  return ticks.size() < 3 ? shades.range.ticks(8) : ticks;
}

// Palette indices from the smallest to the largest.
std::vector<uint8_t> steps() {
  std::vector<uint8_t> out(kSteps);
  for (int n = 0; n < kSteps; ++n)
    out[static_cast<size_t>(n)] = static_cast<uint8_t>(n * (kShades - 1) / (kSteps - 1));
  return out;
}

}  // namespace

Colour Shades::colour(double value) const {
  const double t = range.part(value);
  return is_signed ? diverging_colour(t) : sequential_colour(t);
}

std::vector<Colour> Shades::palette() const {
  std::vector<Colour> out;
  for (int n = 0; n < kShades; ++n)
    out.push_back(is_signed ? diverging_colour(n / (kShades - 1.0))
                            : sequential_colour(n / (kShades - 1.0)));
  return out;
}

uint8_t Shades::index(double value) const {
  if (std::isnan(value)) return kTransparent;
  return static_cast<uint8_t>(std::lround(std::clamp(range.part(value), 0.0, 1.0) * (kShades - 1)));
}

Shades shades_of(const std::vector<double>& values, bool is_signed, std::optional<double> largest) {
  Axis range = axis_around(values);
  if (is_signed) {
    const double most = largest.value_or(std::max(std::abs(range.low), std::abs(range.high)));
    range = {.low = -most, .high = most};
  } else if (largest) {
    range.high = *largest;
  }
  return {.range = range, .is_signed = is_signed};
}

void draw_scale(const Shades& shades, double x, double y, double height, Canvas& canvas) {
  std::vector<uint8_t> pixels = steps();
  std::reverse(pixels.begin(), pixels.end());
  canvas.image(x, y, kThick, height, png_uri(1, kSteps, pixels, shades.palette()));
  canvas.rectangle(x, y, kThick, height, "axis");
  for (const auto& [value, words] : scale_ticks(shades))
    canvas.text(x + 17, y + height * (1 - shades.range.part(value)) + 4, words);
}

void draw_lying_scale(const Shades& shades, double right, double y, Canvas& canvas) {
  constexpr double kLong = 60, kNumber = 32;
  const double x = right - kNumber - kLong;
  canvas.text(x - 5, y + 10, number_text(shades.range.low, 2), "e");
  canvas.image(x, y, kLong, kThick, png_uri(kSteps, 1, steps(), shades.palette()));
  canvas.text(x + kLong + 5, y + 10, number_text(shades.range.high, 2));
}

}  // namespace locant::inline v0
