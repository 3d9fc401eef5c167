// Plain attention (Vaswani et al. 2017, eq. 1) in loops: S[i,j] = <q_i,k_j>/√d.
#include <cmath>

#include "locant/encodings/none/none.h"

namespace locant::inline v0 {
namespace {

template <class Real>
void none_reference(const ReferenceProblem<Real>& p, ReferenceResult<Real>& r) {
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(p.head_dim));
  std::vector<Real>& content = r.scores["content"];  // (heads, q_len, k_len)
  content.resize(p.heads * p.q_len * p.k_len);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j)
        content[(h * p.q_len + i) * p.k_len + j] = scale * p.dot_qk(h, i, j);
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace

void None::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  none_reference(p, r);
}
void None::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  none_reference(p, r);
}

}  // namespace locant::inline v0
