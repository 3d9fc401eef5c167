// out = a·bᵀ for the weights of encodings and layers.
#pragma once

#include "locant/core/view.h"

namespace locant::inline v0 {

// out (M, N) = a (M, K)·b (N, K)ᵀ, computed in the type of out, f32 or f64; any strides. Threaded;
// the bits depend neither on the number of threads nor on M, N or the strides.
void matmul(const ConstView& a, const ConstView& b, const View& out);

}  // namespace locant::inline v0
