// Vaswani et al. 2017, section 3.5, one number at a time, and the two other layouts of public code.
#include <cmath>

#include "locant/encodings/sinusoidal/sinusoidal.h"

namespace locant::inline v0 {

double Sinusoidal::reference_element(int64_t position, int64_t c) const {
  if (config_.padding_idx >= 0 && position == config_.padding_idx) return 0;
  const double p = static_cast<double>(position), D = static_cast<double>(config_.dim);
  if (config_.layout == "interleaved") {
    const int64_t i = c / 2;  // c = 2i or 2i + 1
    const double angle = p / std::pow(config_.base, static_cast<double>(2 * i) / D);
    return c % 2 == 0 ? std::sin(angle) : std::cos(angle);
  }
  if (config_.layout == "split") {
    const int64_t sines = (config_.dim + 1) / 2;
    const int64_t i = c < sines ? c : c - sines;
    const double angle = p / std::pow(config_.base, static_cast<double>(2 * i) / D);
    return c < sines ? std::sin(angle) : std::cos(angle);
  }
  const int64_t half = config_.dim / 2;
  if (c == 2 * half) return 0;  // the last channel of an odd width
  const int64_t i = c < half ? c : c - half;
  const double exponent = static_cast<double>(i) / static_cast<double>(half - 1);
  const double angle = p / std::pow(config_.base, exponent);
  return c < half ? std::sin(angle) : std::cos(angle);
}

}  // namespace locant::inline v0
