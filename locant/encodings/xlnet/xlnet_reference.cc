// Yang et al. 2019, section 2.5, with Transformer-XL's section 3.3, in loops:
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r> + <q_i + s, seg[i and j differ]>)/√d
#include <algorithm>
#include <cmath>

#include "locant/encodings/relative_reference.h"
#include "locant/encodings/xlnet/xlnet.h"

namespace locant::inline v0 {
namespace {

// r = pos(i) - pos(j), clamped as the configuration says.
int64_t distance_of(int64_t i, int64_t j, const XLNetConfig& config) {
  int64_t r = i - j;
  if (config.attn_type == "uni") r = std::max<int64_t>(r, 0);
  if (config.clamp_len > 0) r = std::clamp(r, -config.clamp_len, config.clamp_len);
  return r;
}

template <class Real>
void xlnet_reference(const XLNetConfig& config, const ReferenceProblem<Real>& p,
                     ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, width = p.heads * d;
  const int64_t d_model = config.d_model > 0 ? config.d_model : width;
  const Real scale = p.scale_or(1 / std::sqrt(Real(d)));
  const std::vector<Real>& u = p.parameters.at("r_w_bias");
  const std::vector<Real>& v = p.parameters.at("r_r_bias");
  const std::vector<Real>& s = p.parameters.at("r_s_bias");
  const std::vector<Real>& seg_embed = p.parameters.at("seg_embed");  // (2, heads, d)
  const std::vector<Real>& weight = p.parameters.at("r");             // (d_model, heads·d)
  const ReferenceProjection<Real> projected(
      p, d_model, [&](int64_t i, int64_t j) { return distance_of(i, j, config); },
      [&](int64_t n, int64_t m) { return weight[m * width + n]; });

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
  if (!p.q_segments.empty())
    reference_scores(
        p, "segment",
        [&](int64_t h, int64_t i, int64_t j) {
          const int64_t x = p.q_segments[i] == p.k_segments[j] ? 0 : 1;
          return scale * reference_product(p, s, h, i, &seg_embed[x * width + h * d]);
        },
        r);
  reference_softmax(p, r);
}

}  // namespace

void XLNet::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  xlnet_reference(config_, p, r);
}
void XLNet::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  xlnet_reference(config_, p, r);
}

}  // namespace locant::inline v0
