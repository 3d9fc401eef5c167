// DeBERTa (He et al. 2021, section 3.1) in loops, with r = pos(i) - pos(j), x = slot(r):
//   S[i,j] = s·(<q_i,k_j> + <q_i,PK[x]> + <k_j,PQ[x]> + <PQ[x],PK[x]>),   s = 1/√(d·f)
// p2c uses the slot of c2p, as released code and checkpoints do (the paper writes δ(j,i)).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "locant/encodings/deberta/deberta.h"

namespace locant::inline v0 {
namespace {

// S: the tables have 2·S rows.
int64_t span_of(const DebertaConfig& config) {
  return config.position_buckets > 0 ? config.position_buckets : config.max_relative_positions;
}

// Distances up to half the buckets keep their own bucket; the others share buckets by logarithm up
// to max_relative_positions - 1. Float32 because the released code's logarithms are.
int64_t log_bucket(int64_t r, const DebertaConfig& config) {
  const int64_t mid = config.position_buckets / 2;
  const int64_t distance = std::abs(r);
  if (distance <= mid) return r;
  const float ratio = static_cast<float>(distance) / static_cast<float>(mid);
  const float largest =
      static_cast<float>(static_cast<double>(config.max_relative_positions - 1) / mid);
  const float steps = std::log(ratio) / std::log(largest) * static_cast<float>(mid - 1);
  const int64_t bucket = mid + static_cast<int64_t>(std::ceil(steps));
  return r < 0 ? -bucket : bucket;
}

int64_t slot(int64_t r, const DebertaConfig& config) {
  if (config.far == "clamp") {
    const int64_t farthest = config.max_relative_positions - 1;
    r = std::clamp(r, -farthest, farthest);
  }
  const int64_t span = span_of(config);
  const int64_t bucket = config.position_buckets > 0 ? log_bucket(r, config) : r;
  return std::clamp<int64_t>(bucket + span, 0, 2 * span - 1);
}

template <class Real>
void deberta_reference(const DebertaConfig& config, const ReferenceProblem<Real>& p,
                       ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, slots = 2 * span_of(config);
  const Real factor = config.scale_factor > 0
                          ? Real(config.scale_factor)
                          : Real(1 + int{config.c2p} + int{config.p2c} + int{config.p2p});
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(d) * factor);
  const auto dot = [&](const Real* x, const Real* y) {
    return std::inner_product(x, x + d, y, Real(0));
  };

  const size_t pairs = p.heads * p.q_len * p.k_len;
  std::vector<Real>& content = r.scores["content"];  // each (heads, q_len, k_len)
  content.resize(pairs);
  if (config.c2p) r.scores["c2p"].resize(pairs);
  if (config.p2c) r.scores["p2c"].resize(pairs);
  if (config.p2p) r.scores["p2p"].resize(pairs);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j) {
        const int64_t at = (h * p.q_len + i) * p.k_len + j;
        const int64_t x = h * slots + slot(p.q_pos[i] - p.k_pos[j], config);
        const auto pos_key = [&] { return &p.parameters.at("pos_key")[x * d]; };
        const auto pos_query = [&] { return &p.parameters.at("pos_query")[x * d]; };
        content[at] = scale * p.dot_qk(h, i, j);
        if (config.c2p) r.scores["c2p"][at] = scale * dot(p.query(h, i), pos_key());
        if (config.p2c) r.scores["p2c"][at] = scale * dot(p.key(h, j), pos_query());
        if (config.p2p) r.scores["p2p"][at] = scale * dot(pos_query(), pos_key());
      }
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace

void Deberta::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  deberta_reference(config_, p, r);
}
void Deberta::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  deberta_reference(config_, p, r);
}

}  // namespace locant::inline v0
