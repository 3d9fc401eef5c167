// Dai et al. 2019, section 3.3, in loops:
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r>)/√d,   r = pos(i) - pos(j)
#include <algorithm>
#include <cmath>

#include "locant/encodings/relative_reference.h"
#include "locant/encodings/transformer_xl/transformer_xl.h"

namespace locant::inline v0 {
namespace {

template <class Real>
void transformer_xl_reference(const TransformerXLConfig& config, const ReferenceProblem<Real>& p,
                              ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim;
  const int64_t d_model = config.d_model > 0 ? config.d_model : p.heads * d;
  const Real scale = p.scale_or(1 / std::sqrt(Real(d)));
  const std::vector<Real>& u = p.parameters.at("r_w_bias");
  const std::vector<Real>& v = p.parameters.at("r_r_bias");
  const std::vector<Real>& weight = p.parameters.at("r_net");  // (heads·d, d_model)
  const ReferenceProjection<Real> projected(
      p, d_model,
      [&](int64_t i, int64_t j) {
        return config.clamp_len > 0 ? std::min(i - j, config.clamp_len) : i - j;
      },
      [&](int64_t n, int64_t m) { return weight[n * d_model + m]; });

  reference_scores(
      p, "content",
      [&](int64_t h, int64_t i, int64_t j) {
        return scale * reference_product(p, u, h, i, p.key(h, j));
      },
      r);
  reference_scores(
      p, "position",
      [&](int64_t h, int64_t i, int64_t j) {
        return scale * reference_product(p, v, h, i, projected.row(i, j) + h * d);
      },
      r);
  reference_softmax(p, r);
}

}  // namespace

void TransformerXL::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  transformer_xl_reference(config_, p, r);
}
void TransformerXL::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  transformer_xl_reference(config_, p, r);
}

}  // namespace locant::inline v0
