// Dai et al. 2019, section 3.3, in loops:
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r>)/√d,   r = pos(i) - pos(j)
#include <algorithm>
#include <cmath>

#include "locant/encodings/transformer_xl/transformer_xl.h"

namespace locant::inline v0 {
namespace {

// W_R·R_r, (heads·d). Angles are taken in float64 in either type: what float32 makes of a large one
// is no yardstick.
template <class Real>
std::vector<Real> projected_sinusoid(int64_t r, const std::vector<Real>& weight, int64_t width,
                                     int64_t d_model) {
  std::vector<Real> sinusoid(d_model);
  for (int64_t t = 0; t < d_model / 2; ++t) {
    const double angle = r * std::pow(10000.0, -2.0 * t / d_model);
    sinusoid[t] = static_cast<Real>(std::sin(angle));
    sinusoid[d_model / 2 + t] = static_cast<Real>(std::cos(angle));
  }
  std::vector<Real> out(width, 0);
  for (int64_t n = 0; n < width; ++n)
    for (int64_t m = 0; m < d_model; ++m) out[n] += weight[n * d_model + m] * sinusoid[m];
  return out;
}

template <class Real>
void transformer_xl_reference(const TransformerXLConfig& config, const ReferenceProblem<Real>& p,
                              ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, width = p.heads * d;
  const int64_t d_model = config.d_model > 0 ? config.d_model : width;
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(d));
  const std::vector<Real>& u = p.parameters.at("r_w_bias");
  const std::vector<Real>& v = p.parameters.at("r_r_bias");
  const std::vector<Real>& weight = p.parameters.at("r_net");

  const size_t pairs = p.heads * p.q_len * p.k_len;
  std::vector<Real>& content = r.scores["content"];  // each (heads, q_len, k_len)
  std::vector<Real>& position = r.scores["position"];
  content.resize(pairs);
  position.resize(pairs);
  std::map<int64_t, std::vector<Real>> projected;  // by distance
  for (int64_t i = 0; i < p.q_len; ++i)
    for (int64_t j = 0; j < p.k_len; ++j) {
      int64_t distance = p.q_pos[i] - p.k_pos[j];
      if (config.clamp_len > 0) distance = std::min(distance, config.clamp_len);
      std::vector<Real>& row = projected[distance];
      if (row.empty()) row = projected_sinusoid(distance, weight, width, d_model);
      for (int64_t h = 0; h < p.heads; ++h) {
        Real with_key = 0, with_position = 0;
        for (int64_t c = 0; c < d; ++c) {
          with_key += (p.query(h, i)[c] + u[h * d + c]) * p.key(h, j)[c];
          with_position += (p.query(h, i)[c] + v[h * d + c]) * row[h * d + c];
        }
        content[(h * p.q_len + i) * p.k_len + j] = scale * with_key;
        position[(h * p.q_len + i) * p.k_len + j] = scale * with_position;
      }
    }
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace

void TransformerXL::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  transformer_xl_reference(config_, p, r);
}
void TransformerXL::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  transformer_xl_reference(config_, p, r);
}

}  // namespace locant::inline v0
