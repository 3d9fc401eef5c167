// Yang et al. 2019, section 2.5, with Transformer-XL's section 3.3, in loops:
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r> + <q_i + s, seg[i and j differ]>)/√d
#include <algorithm>
#include <cmath>

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

// W_R·R_r, (heads·d); weight (d_model, heads·d). Angles are taken in float64 in either type: what
// float32 makes of a large one is no yardstick.
template <class Real>
std::vector<Real> projected_sinusoid(int64_t r, const std::vector<Real>& weight, int64_t width,
                                     int64_t d_model) {
  std::vector<Real> out(width, 0);
  for (int64_t m = 0; m < d_model; ++m) {
    const int64_t t = m % (d_model / 2);
    const double angle = r * std::pow(10000.0, -2.0 * t / d_model);
    const Real sinusoid = static_cast<Real>(m < d_model / 2 ? std::sin(angle) : std::cos(angle));
    for (int64_t n = 0; n < width; ++n) out[n] += sinusoid * weight[m * width + n];
  }
  return out;
}

template <class Real>
void xlnet_reference(const XLNetConfig& config, const ReferenceProblem<Real>& p,
                     ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, width = p.heads * d;
  const int64_t d_model = config.d_model > 0 ? config.d_model : width;
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(d));
  const bool segments = !p.q_segments.empty();
  const auto vector = [&](const char* name, int64_t h) { return &p.parameters.at(name)[h * d]; };

  const size_t pairs = p.heads * p.q_len * p.k_len;
  r.scores["content"].resize(pairs);  // each (heads, q_len, k_len)
  r.scores["position"].resize(pairs);
  if (segments) r.scores["segment"].resize(pairs);
  std::map<int64_t, std::vector<Real>> projected;  // by distance
  for (int64_t i = 0; i < p.q_len; ++i)
    for (int64_t j = 0; j < p.k_len; ++j) {
      const int64_t distance = distance_of(p.q_pos[i], p.k_pos[j], config);
      std::vector<Real>& row = projected[distance];
      if (row.empty()) row = projected_sinusoid(distance, p.parameters.at("r"), width, d_model);
      for (int64_t h = 0; h < p.heads; ++h) {
        const int64_t at = (h * p.q_len + i) * p.k_len + j;
        const auto product = [&](const char* plus, const Real* y) {
          Real sum = 0;
          for (int64_t c = 0; c < d; ++c) sum += (p.query(h, i)[c] + vector(plus, h)[c]) * y[c];
          return scale * sum;
        };
        r.scores["content"][at] = product("r_w_bias", p.key(h, j));
        r.scores["position"][at] = product("r_r_bias", &row[h * d]);
        if (segments) {
          const int64_t x = p.q_segments[i] == p.k_segments[j] ? 0 : 1;
          r.scores["segment"][at] = product("r_s_bias", vector("seg_embed", x * p.heads + h));
        }
      }
    }
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace

void XLNet::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  xlnet_reference(config_, p, r);
}
void XLNet::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  xlnet_reference(config_, p, r);
}

}  // namespace locant::inline v0
