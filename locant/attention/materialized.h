// Attention with everything in the open: probabilities, each term's scores, talking heads,
// arbitrary position ids. It consumes the same terms as the fused kernel and needs O(Lq·Lk) memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/tensor.h"
#include "locant/core/view.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// What the materialised path can do besides the output.
struct MaterializedOptions {
  ConstView talking_logits;  // W (H, H): out[g] = sum_h W[g,h]·in[h] before masking and softmax
  ConstView talking_probabilities;  // the same on the probabilities
  bool keep = true;                 // false: out and lse only; memory linear in the lengths
  // Also the probabilities of each sequence apart, (H, q_len, k_len) float32, put behind what is
  // there.
  std::vector<Tensor>* by_sequence = nullptr;
};

// Pairs that are not visible hold 0. With talking heads, scores are before mixing and probabilities
// after it; dropout comes between softmax and mixing.
struct Materialized {
  std::vector<double> probabilities;                                // (B, H, Lq, Lk)
  std::vector<std::pair<std::string, std::vector<double>>> scores;  // each term, (B, H, Lq, Lk)
};

// O = softmax(c·QKᵀ + terms)·(V + value terms); scores come as "content" and then every term by
// name.
//   q (B, H, Lq, d)   k (B, Hkv, Lk, d)   v (B, Hkv, Lk, dv)   out (B, H, Lq, dv)   lse (B, H, Lq)
LOCANT_API Materialized materialized_forward(const Problem& problem, const ConstView& q,
                                             const ConstView& k, const ConstView& v,
                                             const Terms& terms, const MaterializedOptions& extras,
                                             const View& out, const View& lse);

}  // namespace locant::inline v0
