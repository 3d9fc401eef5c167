// KERPLE, the logarithmic kernel (Chi et al. 2022, equation 7), in loops:
//   S[i,j] = <q_i,k_j>/√d - r1_h·ln(1 + r2_h·|pos(j) - pos(i)|)
#include <cmath>
#include <cstdlib>

#include "locant/encodings/kerple/kerple.h"

namespace locant::inline v0 {
namespace {

template <class Real>
void kerple_reference(const ReferenceProblem<Real>& p, ReferenceResult<Real>& r) {
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(p.head_dim));
  std::vector<Real> r1 = p.parameters.at("r1"), r2 = p.parameters.at("r2");
  for (int64_t h = 0; h < p.heads; ++h) {
    if (r1[h] < Real(0.01)) r1[h] = Real(0.01);
    if (r2[h] < Real(0.01)) r2[h] = Real(0.01);
  }
  std::vector<Real>& content = r.scores["content"];  // (heads, q_len, k_len)
  std::vector<Real>& bias = r.scores["bias"];        // (heads, q_len, k_len)
  content.resize(p.heads * p.q_len * p.k_len);
  bias.resize(content.size());
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j) {
        const int64_t at = (h * p.q_len + i) * p.k_len + j;
        const Real distance = Real(std::abs(p.q_pos[i] - p.k_pos[j]));
        content[at] = scale * p.dot_qk(h, i, j);
        bias[at] = -r1[h] * std::log(1 + r2[h] * distance);
      }
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace

void Kerple::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  kerple_reference(p, r);
}
void Kerple::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  kerple_reference(p, r);
}

}  // namespace locant::inline v0
