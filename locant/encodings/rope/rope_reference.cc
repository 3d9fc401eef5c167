// Su et al. 2021, equation 34, in loops: q and k turn pair by pair, S[i,j] = c·<R_m q_i, R_n k_j>.
// Scalings: kaiokendev (linear), bloc97 (ntk), emozilla (dynamic), Peng et al. 2023 (yarn),
// Llama 3.1, Ding et al. 2024 (longrope), Sun et al. 2022 (xpos); axes: Qwen2-VL, Qwen3-VL,
// Pixtral.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "locant/encodings/rope/rope.h"

namespace locant::inline v0 {
namespace {

struct Pair {
  double theta = 0;
  double zeta = 1;  // xpos: the score's factor per 512 positions
  int64_t axis = 0;
  int64_t a = 0, b = 0;  // its columns
};

double yarn_theta(const RopeConfig& f, double theta, double t, double rot) {
  const double L0 = f.original_max_position;
  const double s = f.factor == 1 && f.max_position > 0 ? f.max_position / L0 : f.factor;
  double low = rot * std::log(L0 / (2 * std::numbers::pi * f.beta_fast)) / (2 * std::log(f.base));
  double high = rot * std::log(L0 / (2 * std::numbers::pi * f.beta_slow)) / (2 * std::log(f.base));
  if (f.truncate) low = std::floor(low), high = std::ceil(high);
  if (low < 0) low = 0;
  if (high > rot - 1) high = rot - 1;
  if (low == high) high += 0.001;
  const double ramp = std::max(0.0, std::min(1.0, (t - low) / (high - low)));
  return theta * (1 - ramp) + theta / s * ramp;
}

double llama3_theta(const RopeConfig& f, double theta) {
  const double L0 = f.original_max_position, lambda = 2 * std::numbers::pi / theta;
  if (lambda < L0 / f.high_freq_factor) return theta;
  if (lambda > L0 / f.low_freq_factor) return theta / f.factor;
  const double g = (L0 / lambda - f.low_freq_factor) / (f.high_freq_factor - f.low_freq_factor);
  return (1 - g) * theta / f.factor + g * theta;
}

// θ of pair t in a sequence of L positions.
double theta_of(const RopeConfig& f, int64_t t, int64_t rot, int64_t L) {
  const double exponent = -2.0 * t / rot;
  const double theta = std::pow(f.base, exponent);
  const double s = f.factor, L0 = f.original_max_position;
  if (f.scaling == "linear") return theta / s;
  if (f.scaling == "ntk" && rot > 2)
    return std::pow(f.base * std::pow(s, rot / (rot - 2.0)), exponent);
  if (f.scaling == "dynamic" && rot > 2 && L > f.original_max_position)
    return std::pow(f.base * std::pow(s * L / L0 - (s - 1), rot / (rot - 2.0)), exponent);
  if (f.scaling == "yarn") return yarn_theta(f, theta, t, rot);
  if (f.scaling == "llama3") return llama3_theta(f, theta);
  if (f.scaling == "longrope")
    return theta / (L > f.original_max_position ? f.long_factor : f.short_factor)[t];
  if (f.scaling == "proportional")
    return t < static_cast<int64_t>(std::floor(f.partial_rotary_factor * rot / 2)) ? theta / s : 0;
  return theta;
}

// What multiplies cosines and sines.
double magnitude_of(const RopeConfig& f) {
  if (f.scaling != "yarn" && f.scaling != "longrope") return 1;
  if (f.attention_factor != 0) return f.attention_factor;
  const double L0 = f.original_max_position;
  const double s = f.factor == 1 && f.max_position > 0 ? f.max_position / L0 : f.factor;
  if (s <= 1) return 1;
  if (f.scaling == "longrope") return std::sqrt(1 + std::log(s) / std::log(L0));
  if (f.mscale != 0 && f.mscale_all_dim != 0)
    return (0.1 * f.mscale * std::log(s) + 1) / (0.1 * f.mscale_all_dim * std::log(s) + 1);
  return 0.1 * std::log(s) + 1;
}

int64_t section_of(const RopeConfig& f, int64_t t) {
  if (f.sections_layout == "interleaved") {
    if (t % 3 == 1 && t < 3 * f.sections[1]) return 1;
    if (t % 3 == 2 && t < 3 * f.sections[2]) return 2;
    return 0;
  }
  int64_t axis = 0;
  for (double end = f.sections[0]; t >= end; end += f.sections[axis]) ++axis;
  return axis;
}

std::vector<Pair> pairs_of(const RopeConfig& f, int64_t L) {
  const bool whole = f.scaling == "proportional";
  const int64_t rot =
      whole ? f.head_dim : static_cast<int64_t>(f.head_dim * f.partial_rotary_factor);
  std::vector<Pair> pairs(rot / 2);
  for (int64_t t = 0; t < rot / 2; ++t) {
    Pair& pair = pairs[t];
    pair.theta = theta_of(f, t, rot, L);
    if (f.scaling == "xpos") pair.zeta = (2.0 * t / rot + 0.4) / 1.4;
    if (f.axes == "sections") pair.axis = section_of(f, t);
    if (f.axes == "2d_split") {  // [h | w], each with θ over rot/2
      pair.axis = t < rot / 4 ? 0 : 1;
      pair.theta = std::pow(f.base, -2.0 * (t % (rot / 4)) / (rot / 2.0));
    }
    if (f.axes == "2d_alternating") {  // [h | w]: h has the even θ over rot, w the odd
      pair.axis = t < rot / 4 ? 0 : 1;
      pair.theta = std::pow(f.base, -2.0 * (2 * (t % (rot / 4)) + pair.axis) / rot);
    }
    const bool halves = f.layout == "half";
    pair.a = halves ? t : 2 * t;
    pair.b = halves ? t + rot / 2 : 2 * t + 1;
  }
  return pairs;
}

template <class Real>
void rope_reference(const RopeConfig& config, const ReferenceProblem<Real>& p,
                    ReferenceResult<Real>& r) {
  const Real scale = p.scale_or(1 / std::sqrt(Real(p.head_dim)));
  int64_t L = 0;  // the largest key position + 1
  for (const int64_t position : p.k_pos) L = std::max(L, position + 1);
  const std::vector<Pair> pairs = pairs_of(config, L);
  const double magnitude = magnitude_of(config);

  // Scores depend on differences of positions only. Angles are counted from the first query: so
  // they are small, and float64 is right to the last digits however far the positions are.
  const int64_t axes = p.position_axes;
  const auto rotate = [&](std::vector<Real> x, const std::vector<int64_t>& pos, int64_t heads) {
    const int64_t rows = static_cast<int64_t>(pos.size()) / axes;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        for (const Pair& pair : pairs) {
          const int64_t from_first = pos[i * axes + pair.axis] - p.q_pos[pair.axis];
          const double angle = static_cast<double>(from_first) * pair.theta;
          const Real c = static_cast<Real>(magnitude * std::cos(angle));
          const Real s = static_cast<Real>(magnitude * std::sin(angle));
          Real* row = &x[(h * rows + i) * p.head_dim];
          const Real a = row[pair.a], b = row[pair.b];
          row[pair.a] = a * c - b * s;
          row[pair.b] = b * c + a * s;
        }
    return x;
  };
  std::vector<Real>& content = r.scores["content"];  // (heads, q_len, k_len)
  content.resize(p.heads * p.q_len * p.k_len);
  if (p.q_len > 0) {
    ReferenceProblem<Real> turned = p;
    turned.q = rotate(p.q, p.q_pos, p.heads);
    turned.k = rotate(p.k, p.k_pos, p.kv_heads);
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t i = 0; i < p.q_len; ++i)
        for (int64_t j = 0; j < p.k_len; ++j) {
          Real& score = content[(h * p.q_len + i) * p.k_len + j];
          score = turned.dot_qk(h, i, j);
          if (config.scaling == "xpos") {  // ζ^(m/512) of q and ζ^(-n/512) of k meet in the product
            const Real *q = turned.query(h, i), *k = turned.key(h, j);
            for (const Pair& pair : pairs) {
              const double power = std::pow(pair.zeta, (p.q_pos[i] - p.k_pos[j]) / 512.0);
              score +=
                  static_cast<Real>(power - 1) * (q[pair.a] * k[pair.a] + q[pair.b] * k[pair.b]);
            }
          }
          score *= scale;
        }
  }
  reference_softmax(p, r);
}

}  // namespace

void Rope::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  rope_reference(config_, p, r);
}
void Rope::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  rope_reference(config_, p, r);
}

}  // namespace locant::inline v0
