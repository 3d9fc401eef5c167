// Plain attention (Vaswani et al. 2017, eq. 1) in loops: S[i,j] = <q_i,k_j>/√d.
#include <cmath>

#include "locant/encodings/none/none.h"

namespace locant::inline v0 {
namespace {

template <class Real>
void none_reference(const ReferenceProblem<Real>& p, ReferenceResult<Real>& r) {
  const Real scale = p.scale_or(1 / std::sqrt(Real(p.head_dim)));
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  reference_softmax(p, r);
}

}  // namespace

void None::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  none_reference(p, r);
}
void None::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  none_reference(p, r);
}

}  // namespace locant::inline v0
