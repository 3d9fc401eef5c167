// KERPLE, the logarithmic kernel (Chi et al. 2022, equation 7), in loops:
//   S[i,j] = <q_i,k_j>/√d - r1_h·ln(1 + r2_h·|pos(j) - pos(i)|)
#include <cmath>
#include <cstdlib>

#include "locant/encodings/kerple/kerple.h"

namespace locant::inline v0 {
namespace {

template <class Real>
void kerple_reference(const ReferenceProblem<Real>& p, ReferenceResult<Real>& r) {
  const Real scale = p.scale_or(1 / std::sqrt(Real(p.head_dim)));
  std::vector<Real> r1 = p.parameters.at("r1"), r2 = p.parameters.at("r2");
  for (int64_t h = 0; h < p.heads; ++h) {
    if (r1[h] < Real(0.01)) r1[h] = Real(0.01);
    if (r2[h] < Real(0.01)) r2[h] = Real(0.01);
  }
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  reference_scores(
      p, "bias",
      [&](int64_t h, int64_t i, int64_t j) {
        const Real distance = Real(std::abs(p.q_pos[i] - p.k_pos[j]));
        return -r1[h] * std::log(1 + r2[h] * distance);
      },
      r);
  reference_softmax(p, r);
}

}  // namespace

void Kerple::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  kerple_reference(p, r);
}
void Kerple::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  kerple_reference(p, r);
}

}  // namespace locant::inline v0
