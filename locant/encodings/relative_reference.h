// What the references of Transformer-XL and XLNet share: W_R·R_r in loops, and (q + u)·y.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "locant/encodings/reference.h"

namespace locant::inline v0 {

// [sin(r·θ_t) | cos(r·θ_t)], θ_t = 10000^(-2t/D), of width D. Angles are taken in float64 in either
// type: what float32 makes of a large one is no yardstick.
template <class Real>
std::vector<Real> reference_sinusoid(int64_t r, int64_t d_model) {
  std::vector<Real> out(d_model);
  for (int64_t t = 0; t < d_model / 2; ++t) {
    const double angle =
        static_cast<double>(r) *
        std::pow(10000.0, -2.0 * static_cast<double>(t) / static_cast<double>(d_model));
    out[t] = static_cast<Real>(std::sin(angle));
    out[d_model / 2 + t] = static_cast<Real>(std::cos(angle));
  }
  return out;
}

// W_R·R_r, (heads·d), of every pair, each distance once. weight(n, m) is W_R, (heads·d, D).
template <class Real>
class ReferenceProjection {
 public:
  template <class Distance, class Weight>
  ReferenceProjection(const ReferenceProblem<Real>& p, int64_t d_model, const Distance& distance,
                      const Weight& weight)
      : k_len_(p.k_len) {
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j) {
        const int64_t r = distance(p.q_pos[i], p.k_pos[j]);
        std::vector<Real>& row = by_distance_[r];
        if (row.empty()) {
          const std::vector<Real> sinusoid = reference_sinusoid<Real>(r, d_model);
          row.assign(p.heads * p.head_dim, 0);
          for (size_t n = 0; n < row.size(); ++n)
            for (int64_t m = 0; m < d_model; ++m)
              row[n] += weight(static_cast<int64_t>(n), m) * sinusoid[m];
        }
        pairs_.push_back(row.data());
      }
  }

  const Real* row(int64_t i, int64_t j) const { return pairs_[i * k_len_ + j]; }

 private:
  int64_t k_len_;
  std::map<int64_t, std::vector<Real>> by_distance_;
  std::vector<const Real*> pairs_;  // (q_len, k_len)
};

// <q_i + u, y>, u (heads, d)
template <class Real>
Real reference_product(const ReferenceProblem<Real>& p, const std::vector<Real>& u, int64_t h,
                       int64_t i, const Real* y) {
  const Real* q = p.query(h, i);
  Real sum = 0;
  for (int64_t c = 0; c < p.head_dim; ++c) sum += (q[c] + u[h * p.head_dim + c]) * y[c];
  return sum;
}

}  // namespace locant::inline v0
