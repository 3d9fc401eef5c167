// Functions of whole rows of float32: normalisation and activations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "locant/core/view.h"
#include "locant/kernels/activation.h"

namespace locant::inline v0 {

// What normalises rows of N: gamma (N), and beta (N), or none: then it is an rms_norm.
struct NormWeights {
  ConstView gamma = {}, beta = {};
  float eps = 0;
  explicit operator bool() const { return static_cast<bool>(gamma); }
};

// One row of layer_norm, or of rms_norm: then beta is null. residual may be null.
struct NormRow {
  const float *x, *residual, *gamma, *beta;
  float* y;
  size_t width;
  float eps;
};

inline NormRow norm_row(const float* x, const float* residual, const NormWeights& weights, float* y,
                        int64_t width) {
  return {.x = x,
          .residual = residual,
          .gamma = weights.gamma.at<float>(),
          .beta = weights.beta ? weights.beta.at<float>() : nullptr,
          .y = y,
          .width = static_cast<size_t>(width),
          .eps = weights.eps};
}

// Fails by name unless the weights are f32 (width); those of a layer_norm include beta.
void check_norm(const NormWeights& weights, int64_t width);
void check_layer_norm(const NormWeights& weights, int64_t width);

// layer_norm or rms_norm, by what the weights are, on the instruction set of this index.
void normalize(const ConstView& x, const NormWeights& weights, const View& y, size_t isa);

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
