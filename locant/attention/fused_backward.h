// The backward of the fused path: gradients of q, k, v and of every term. Memory is linear in the
// lengths; probabilities are computed again from lse.
#pragma once

#include "locant/core/view.h"
#include "locant/terms/gradients.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// What the forward was given and gave.
//   q (B, H, Lq, d)   k (B, Hkv, Lk, d)   v (B, Hkv, Lk, dv)   out (B, H, Lq, dv)   lse (B, H, Lq)
struct ForwardResult {
  ConstView q, k, v, out, lse;
};

// dq, dk, dv and the gradients of the terms from dout (B, H, Lq, dv). The same bits for any number
// of threads. Rows of padding get zeros.
TermGradients fused_backward(const Problem& problem, const Terms& terms,
                             const ForwardResult& forward, const ConstView& dout,
                             const Tiling& tiling, const View& dq, const View& dk, const View& dv);

}  // namespace locant::inline v0
