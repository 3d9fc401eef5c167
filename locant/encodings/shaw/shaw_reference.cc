// Shaw et al. 2018, equations 3 and 4, in loops:
//   S[i,j] = (<q_i,k_j> + <q_i, aK[row]> (+ <k_j, aK[row]>))/√d      O_i = sum_j P[i,j]·(v_j +
//   aV[row])
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "locant/core/error.h"
#include "locant/encodings/shaw/shaw.h"

namespace locant::inline v0 {
namespace {

// δ = pos(j) - pos(i) -> row of the tables: clip(δ)+k, or clip(-δ)+k when reversed.
int64_t row_of(int64_t delta, const ShawConfig& config) {
  const int64_t k = config.max_distance;
  if (!config.clip && std::abs(delta) > k)
    fail("shaw", "without clipping, distances must be <= max_distance = ", k, ", got ",
         std::abs(delta));
  return std::clamp(config.reversed ? -delta : delta, -k, k) + k;
}

template <class Real>
void shaw_reference(const ShawConfig& config, const ReferenceProblem<Real>& p,
                    ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, rows = 2 * config.max_distance + 1;
  const Real scale = p.scale_or(1 / std::sqrt(Real(d)));
  // Tables are (rows, d) for all heads or (heads, rows, d): the row that a pair meets.
  const auto entry = [&](const std::vector<Real>& table, int64_t h, int64_t i, int64_t j) {
    const int64_t row = row_of(p.k_pos[j] - p.q_pos[i], config);
    return &table[((config.per_head ? h : 0) * rows + row) * d];
  };
  const std::vector<Real>& keys = p.parameters.at("keys");
  const auto product = [&](const Real* x, const Real* y) {
    return scale * std::inner_product(x, x + d, y, Real(0));
  };
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  reference_scores(
      p, "keys",
      [&](int64_t h, int64_t i, int64_t j) { return product(p.query(h, i), entry(keys, h, i, j)); },
      r);
  if (config.key_query)
    reference_scores(
        p, "keys_key",
        [&](int64_t h, int64_t i, int64_t j) { return product(p.key(h, j), entry(keys, h, i, j)); },
        r);

  if (!config.values) return reference_softmax(p, r);
  const std::vector<Real>& values = p.parameters.at("values");
  reference_softmax(
      p,
      [&](int64_t h, int64_t i, int64_t j, int64_t c) {
        return p.value(h, j)[c] + entry(values, h, i, j)[c];
      },
      r);
}

}  // namespace

void Shaw::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  shaw_reference(config_, p, r);
}
void Shaw::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  shaw_reference(config_, p, r);
}

}  // namespace locant::inline v0
