// Functions of whole rows of float32: normalisation and activations.
#pragma once

#include "locant/core/view.h"
#include "locant/kernels/activation.h"

namespace locant::inline v0 {

// y = (x - mean(x))/sqrt(var(x) + eps)·gamma + beta for each row of x (M, N); gamma, beta (N).
// y may be x itself. Threaded; float32, rows of contiguous elements.
void layer_norm(const ConstView& x, const ConstView& gamma, const ConstView& beta, float eps,
                const View& y);

// The same of x + residual; x is left as it is unless y is x.
void layer_norm(const ConstView& x, const ConstView& residual, const ConstView& gamma,
                const ConstView& beta, float eps, const View& y);

// y = x/sqrt(mean(x²) + eps)·gamma for each row of x (M, N), without mean and beta; y may be x.
void rms_norm(const ConstView& x, const ConstView& gamma, float eps, const View& y);

// x = activation(x), in place.
void activate(Activation activation, const View& x);

}  // namespace locant::inline v0
