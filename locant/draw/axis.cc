#include "locant/draw/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

// 1000 as it is, 10000 as 10⁴: long numbers would run into each other.
std::string power_of_ten_text(int exponent) {
  if (exponent >= -2 && exponent <= 3) return number_text(std::pow(10.0, exponent), 2);
  constexpr std::array kDigits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

// The step 1, 2 or 5 times a power of ten that gives about `count` of them.
double round_step(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * 1.0001) return factor * power;
  return 10 * power;
}

}  // namespace

double Axis::part(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::vector<std::pair<double, std::string>> Axis::ticks(int count) const {
  std::vector<std::pair<double, std::string>> out;
  constexpr double kSlack = 1e-9;
  if (logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(low) - kSlack));
    const int last = static_cast<int>(std::floor(std::log10(high) + kSlack));
    const int every = std::max(1, (last - first + count) / count);
    for (int exponent = first; exponent <= last; exponent += every)
      out.emplace_back(std::pow(10.0, exponent), power_of_ten_text(exponent));
    return out;
  }
  const double step = round_step(high - low, count);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - kSlack)));
  const double slack = kSlack * (high - low);
  for (double n = std::ceil((low - slack) / step); n * step <= high + slack; ++n) {
    out.emplace_back(n * step, label_text(n * step, decimals));
  }
  return out;
}

Axis axis_around(const std::vector<double>& values, bool logarithmic) {
  Axis axis{.low = HUGE_VAL, .high = -HUGE_VAL, .logarithmic = logarithmic};
  for (const double value : values) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
    axis.low = std::min(axis.low, value);
    axis.high = std::max(axis.high, value);
  }
  if (axis.low > axis.high) return {.low = 1, .high = 10, .logarithmic = logarithmic};
  if (axis.low == axis.high) {
    const double room = logarithmic ? axis.low / 2 : std::max(1.0, std::abs(axis.low)) / 2;
    axis.low -= room;
    axis.high += room;
  }
  return axis;
}

}  // namespace locant::inline v0
