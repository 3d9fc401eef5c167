#include "locant/encodings/rope/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace locant::inline v0 {
namespace {

constexpr double kXposScaleBase = 512;  // positions per factor ζ
constexpr double kXposGamma = 0.4;

// base^(-2t/dim) for t < count.
std::vector<double> powers(double base, int64_t dim, int64_t count) {
  std::vector<double> theta(count);
  for (int64_t t = 0; t < count; ++t)
    theta[t] = std::pow(base, -2.0 * static_cast<double>(t) / static_cast<double>(dim));
  return theta;
}

void divide(std::vector<double>& theta, double by) {
  for (double& x : theta) x /= by;
}

// The base that slows the last pair by `stretch` and leaves the first alone.
double ntk_base(double base, double stretch, int64_t rot) {
  if (rot == 2) return base;  // the only pair turns by 1 whatever the base
  const double dim = static_cast<double>(rot);
  return base * std::pow(stretch, dim / (dim - 2));
}

double stretch_factor(const RopeConfig& config) {
  const bool by_length = config.factor == 1 && config.max_position > 0;
  return by_length ? static_cast<double>(config.max_position) /
                         static_cast<double>(config.original_max_position)
                   : config.factor;
}

// Peng et al. 2023: fast pairs keep θ, slow ones take θ/s, and a ramp lies between.
RopeFrequencies yarn(const RopeConfig& config, int64_t rot) {
  const double s = stretch_factor(config), dim = static_cast<double>(rot);
  // The pair that turns `beta` times within L0 positions.
  const auto pair_of = [&](double beta) {
    const double turns =
        static_cast<double>(config.original_max_position) / (2 * std::numbers::pi * beta);
    return dim * std::log(turns) / (2 * std::log(config.base));
  };
  double low = pair_of(config.beta_fast), high = pair_of(config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;

  RopeFrequencies out{powers(config.base, rot, rot / 2), 1};
  for (int64_t t = 0; t < rot / 2; ++t) {
    const double ramp = std::clamp((static_cast<double>(t) - low) / (high - low), 0.0, 1.0);
    out.theta[t] = out.theta[t] * (1 - ramp) + out.theta[t] / s * ramp;
  }
  const auto m = [&](double k) { return s <= 1 ? 1 : 0.1 * k * std::log(s) + 1; };
  if (config.attention_factor != 0)
    out.magnitude = config.attention_factor;
  else if (config.mscale != 0 && config.mscale_all_dim != 0)
    out.magnitude = m(config.mscale) / m(config.mscale_all_dim);
  else
    out.magnitude = m(1);
  return out;
}

// Wavelengths beyond L0/low are slowed by s, those below L0/high stay.
std::vector<double> llama3(const RopeConfig& config, int64_t rot) {
  const double L0 = static_cast<double>(config.original_max_position);
  const double low = config.low_freq_factor, high = config.high_freq_factor;
  std::vector<double> theta = powers(config.base, rot, rot / 2);
  for (double& x : theta) {
    const double wavelength = 2 * std::numbers::pi / x;
    if (wavelength < L0 / high) continue;
    const double keep =
        wavelength > L0 / low ? 0 : (L0 / wavelength - low) / (high - low);  // 0 to 1
    x = (1 - keep) * x / config.factor + keep * x;
  }
  return theta;
}

RopeFrequencies longrope(const RopeConfig& config, int64_t rot, int64_t length) {
  const bool is_long = length > config.original_max_position;
  const std::vector<double>& factors = is_long ? config.long_factor : config.short_factor;
  RopeFrequencies out{powers(config.base, rot, rot / 2), config.attention_factor};
  for (int64_t t = 0; t < rot / 2; ++t) out.theta[t] /= factors[t];
  if (config.attention_factor == 0) {
    const double s = stretch_factor(config);
    const double L0 = static_cast<double>(config.original_max_position);
    out.magnitude = s <= 1 ? 1 : std::sqrt(1 + std::log(s) / std::log(L0));
  }
  return out;
}

// θ of two axes: each axis has its own full range ("2d_split"), or they take turns in one range.
// Either way the first half of the pairs is for axis 0 and the second for axis 1.
std::vector<double> two_axes(const RopeConfig& config, int64_t rot) {
  const int64_t quarter = rot / 4;
  const bool split = config.axes == "2d_split";
  const std::vector<double> theta =
      split ? powers(config.base, rot / 2, quarter) : powers(config.base, rot, rot / 2);
  std::vector<double> out(rot / 2);
  for (int64_t t = 0; t < quarter; ++t) {
    out[t] = theta[split ? t : 2 * t];
    out[quarter + t] = theta[split ? t : 2 * t + 1];
  }
  return out;
}

bool is_two_axes(const RopeConfig& config) {
  return config.axes == "2d_split" || config.axes == "2d_alternating";
}

}  // namespace

int64_t rotary_dim(const RopeConfig& config) {
  // "proportional" turns a part of the pairs, spread over the whole head.
  if (config.scaling == "proportional") return config.head_dim;
  return static_cast<int64_t>(static_cast<double>(config.head_dim) * config.partial_rotary_factor);
}

RopeFrequencies rope_frequencies(const RopeConfig& config, int64_t length) {
  const int64_t rot = rotary_dim(config);
  if (is_two_axes(config)) return {two_axes(config, rot), 1};
  if (config.scaling == "yarn") return yarn(config, rot);
  if (config.scaling == "llama3") return {llama3(config, rot), 1};
  if (config.scaling == "longrope") return longrope(config, rot, length);

  double base = config.base;
  if (config.scaling == "ntk") base = ntk_base(base, config.factor, rot);
  if (config.scaling == "dynamic") {
    const double L0 = static_cast<double>(config.original_max_position);
    const double L = std::max(static_cast<double>(length), L0);
    base = ntk_base(base, config.factor * L / L0 - (config.factor - 1), rot);
  }
  RopeFrequencies out{powers(base, rot, rot / 2), 1};
  if (config.scaling == "linear" || config.scaling == "proportional")
    divide(out.theta, config.factor);
  if (config.scaling == "proportional") {
    const double turning = std::floor(config.partial_rotary_factor * static_cast<double>(rot) / 2);
    std::fill(out.theta.begin() + static_cast<int64_t>(turning), out.theta.end(), 0.0);
  }
  return out;
}

int64_t rope_axis_count(const RopeConfig& config) {
  if (config.axes == "1d") return 1;
  return is_two_axes(config) ? 2 : static_cast<int64_t>(config.sections.size());
}

std::vector<int64_t> rope_axis_of_pair(const RopeConfig& config) {
  const int64_t pairs = rotary_dim(config) / 2;
  std::vector<int64_t> axis(pairs, 0);
  if (is_two_axes(config)) {
    std::fill(axis.begin() + pairs / 2, axis.end(), 1);
  } else if (config.axes == "sections" && config.sections_layout == "contiguous") {
    int64_t t = 0;
    for (size_t a = 0; a < config.sections.size(); ++a)
      for (int64_t n = 0; n < static_cast<int64_t>(config.sections[a]); ++n)
        axis[t++] = static_cast<int64_t>(a);
  } else if (config.axes == "sections") {
    for (int64_t t = 0; t < pairs; ++t)
      if (t < 3 * static_cast<int64_t>(config.sections[t % 3])) axis[t] = t % 3;
  }
  return axis;
}

std::vector<double> rope_growth(const RopeConfig& config) {
  if (config.scaling != "xpos") return {};
  const int64_t rot = rotary_dim(config);
  std::vector<double> growth(rot / 2);
  for (int64_t t = 0; t < rot / 2; ++t) {
    const double zeta =
        (2.0 * static_cast<double>(t) / static_cast<double>(rot) + kXposGamma) / (1 + kXposGamma);
    growth[t] = std::log(zeta) / kXposScaleBase;
  }
  return growth;
}

}  // namespace locant::inline v0
