// T5 (Raffel et al. 2020, section 2.1) in loops: S[i,j] = c·<q_i,k_j> + b[bucket(δ), h].
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "locant/encodings/t5/t5.h"

namespace locant::inline v0 {
namespace {

// δ = pos(j) - pos(i) -> row of the bias table. Half of the buckets of a direction hold one
// distance each; the others grow logarithmically up to max_distance. The logarithms are float32
// because the released code's are: float64 moves some bucket edges (causal, 36 buckets,
// max_distance 32: δ = -24).
int64_t bucket(int64_t delta, const T5Config& config) {
  int64_t buckets = config.num_buckets;  // of one direction
  int64_t first = 0;
  int64_t distance = std::max<int64_t>(-delta, 0);
  if (config.bidirectional) {
    buckets /= 2;
    first = delta > 0 ? buckets : 0;
    distance = std::abs(delta);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
  const float largest =
      static_cast<float>(std::log(static_cast<double>(config.max_distance) / exact));
  const float steps = std::log(ratio) / largest * static_cast<float>(buckets - exact);
  return first + std::min<int64_t>(buckets - 1, exact + static_cast<int64_t>(steps));
}

template <class Real>
void t5_reference(const T5Config& config, const ReferenceProblem<Real>& p,
                  ReferenceResult<Real>& r) {
  const Real scale = p.scale_or(Real(config.scale));
  const std::vector<Real>& table = p.parameters.at("bias");  // (num_buckets, heads)
  reference_scores(
      p, "content", [&](int64_t h, int64_t i, int64_t j) { return scale * p.dot_qk(h, i, j); }, r);
  reference_scores(
      p, "bias",
      [&](int64_t h, int64_t i, int64_t j) {
        return table[bucket(p.k_pos[j] - p.q_pos[i], config) * p.heads + h];
      },
      r);
  reference_softmax(p, r);
}

}  // namespace

void T5::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  t5_reference(config_, p, r);
}
void T5::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  t5_reference(config_, p, r);
}

}  // namespace locant::inline v0
