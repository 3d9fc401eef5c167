// Shaw et al. 2018, equations 3 and 4, in loops:
//   S[i,j] = (<q_i,k_j> + <q_i, aK[row]> (+ <k_j, aK[row]>))/√d      O_i = sum_j P[i,j]·(v_j +
//   aV[row])
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "locant/core/error.h"
#include "locant/encodings/shaw/shaw.h"

namespace locant::inline v0 {
namespace {

// δ = pos(j) - pos(i) -> row of the tables: clip(δ)+k, or clip(-δ)+k when reversed.
int64_t row_of(int64_t delta, const ShawConfig& config) {
  const int64_t k = config.max_distance;
  if (!config.clip && std::abs(delta) > k)
    fail("shaw", "without clipping, distances must be <= max_distance = ", k, ", got ",
         std::abs(delta));
  return std::clamp(config.reversed ? -delta : delta, -k, k) + k;
}

template <class Real>
void shaw_reference(const ShawConfig& config, const ReferenceProblem<Real>& p,
                    ReferenceResult<Real>& r) {
  const int64_t d = p.head_dim, rows = 2 * config.max_distance + 1;
  const Real scale = p.scale != 0 ? p.scale : 1 / std::sqrt(Real(d));
  // Tables are (rows, d) for all heads or (heads, rows, d).
  const auto entry = [&](const std::vector<Real>& table, int64_t h, int64_t row) {
    return &table[((config.per_head ? h : 0) * rows + row) * d];
  };
  const auto row = [&](int64_t i, int64_t j) { return row_of(p.k_pos[j] - p.q_pos[i], config); };

  const std::vector<Real>& keys = p.parameters.at("keys");
  const size_t pairs = p.heads * p.q_len * p.k_len;
  std::vector<Real>& content = r.scores["content"];  // each (heads, q_len, k_len)
  std::vector<Real>& query_side = r.scores["keys"];
  content.resize(pairs);
  query_side.resize(pairs);
  if (config.key_query) r.scores["keys_key"].resize(pairs);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j) {
        const int64_t at = (h * p.q_len + i) * p.k_len + j;
        const Real* a = entry(keys, h, row(i, j));
        content[at] = scale * p.dot_qk(h, i, j);
        query_side[at] = scale * std::inner_product(a, a + d, p.query(h, i), Real(0));
        if (config.key_query)
          r.scores["keys_key"][at] = scale * std::inner_product(a, a + d, p.key(h, j), Real(0));
      }

  reference_softmax(
      p,
      [&](int64_t h, int64_t i, int64_t j, int64_t c) {
        Real value = p.value(h, j)[c];
        if (config.values) value += entry(p.parameters.at("values"), h, row(i, j))[c];
        return value;
      },
      r);
}

}  // namespace

void Shaw::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  shaw_reference(config_, p, r);
}
void Shaw::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  shaw_reference(config_, p, r);
}

}  // namespace locant::inline v0
