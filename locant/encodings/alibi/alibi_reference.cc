// ALiBi (Press et al. 2022, section 3) in loops: S[i,j] = <q_i,k_j>/√d - slope_h·|pos(j) - pos(i)|.
#include <cmath>
#include <cstdlib>

#include "locant/encodings/alibi/alibi.h"

namespace locant::inline v0 {
namespace {

// The paper's geometric sequence for n heads, n a power of two: it begins at 2^(-8/n) and
// multiplies by the same number.
std::vector<double> geometric(int64_t n) {
  const double ratio = std::pow(2.0, -8.0 / static_cast<double>(n));
  std::vector<double> slopes = {ratio};
  while (static_cast<int64_t>(slopes.size()) < n) slopes.push_back(slopes.back() * ratio);
  return slopes;
}

// For other numbers: the sequence of the largest power of two below, then every other slope of the
// next sequence, from its first on.
std::vector<double> slopes_of(const AlibiConfig& config) {
  if (!config.slopes.empty()) return config.slopes;
  int64_t power = 1;
  while (2 * power <= config.heads) power *= 2;
  std::vector<double> slopes = geometric(power);
  const std::vector<double> finer = geometric(2 * power);
  for (size_t n = 0; static_cast<int64_t>(slopes.size()) < config.heads; n += 2)
    slopes.push_back(finer[n]);
  return slopes;
}

template <class Real>
void alibi_reference(const AlibiConfig& config, const ReferenceProblem<Real>& p,
                     ReferenceResult<Real>& r) {
  const Real scale = p.scale_or(1 / std::sqrt(Real(p.head_dim)));
  const std::vector<double> slopes = slopes_of(config);
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  reference_scores(
      p, "bias",
      [&](int64_t h, int64_t i, int64_t j) {
        return -Real(slopes[h]) * Real(std::abs(p.k_pos[j] - p.q_pos[i]));
      },
      r);
  reference_softmax(p, r);
}

}  // namespace

void Alibi::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  alibi_reference(config_, p, r);
}
void Alibi::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  alibi_reference(config_, p, r);
}

}  // namespace locant::inline v0
