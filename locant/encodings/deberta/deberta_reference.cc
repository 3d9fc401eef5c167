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
  const Real scale = p.scale_or(1 / std::sqrt(Real(d) * factor));
  const auto product = [&](const Real* x, const Real* y) {
    return scale * std::inner_product(x, x + d, y, Real(0));
  };
  // The row of a table, (heads, 2S, d), that a pair meets.
  const auto entry = [&](const char* table, int64_t h, int64_t i, int64_t j) {
    const int64_t x = h * slots + slot(p.q_pos[i] - p.k_pos[j], config);
    return &p.parameters.at(table)[x * d];
  };
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  if (config.c2p)
    reference_scores(
        p, "c2p",
        [&](int64_t h, int64_t i, int64_t j) {
          return product(p.query(h, i), entry("pos_key", h, i, j));
        },
        r);
  if (config.p2c)
    reference_scores(
        p, "p2c",
        [&](int64_t h, int64_t i, int64_t j) {
          return product(p.key(h, j), entry("pos_query", h, i, j));
        },
        r);
  if (config.p2p)
    reference_scores(
        p, "p2p",
        [&](int64_t h, int64_t i, int64_t j) {
          return product(entry("pos_query", h, i, j), entry("pos_key", h, i, j));
        },
        r);
  reference_softmax(p, r);
}

}  // namespace

void Deberta::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  deberta_reference(config_, p, r);
}
void Deberta::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  deberta_reference(config_, p, r);
}

}  // namespace locant::inline v0
