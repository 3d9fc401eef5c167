// The fused path: plans work items over sequences, heads and query rows, and runs the tile kernel
// on them. Memory is linear in the lengths.
#pragma once

#include "locant/core/view.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// O = softmax(c·QKᵀ + terms)·(V + value terms); lse may be empty.
//   q (B, H, Lq, d)   k (B, Hkv, Lk, d)   v (B, Hkv, Lk, dv)   out (B, H, Lq, dv)   lse (B, H, Lq)
void fused_forward(const Problem& problem, const ConstView& q, const ConstView& k,
                   const ConstView& v, const Terms& terms, const Tiling& tiling, const View& out,
                   const View& lse);

}  // namespace locant::inline v0
