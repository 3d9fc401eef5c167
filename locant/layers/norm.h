// Norms over the last axis.
//   LayerNorm: y = (x - mean)/sqrt(variance + eps)·gamma + beta
//   RmsNorm:   y = x/sqrt(mean of x² + eps)·gamma
#pragma once

#include "locant/core/api.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// gamma and beta (N) are views: they must outlive the layer.
struct LOCANT_API LayerNorm {
  ConstView gamma, beta;
  float eps = 1e-12f;

  // x, y (M, N) float32 with contiguous rows; y may be x.
  void run(const ConstView& x, const View& y) const;

  // The same of x + residual.
  void run(const ConstView& x, const ConstView& residual, const View& y) const;
};

// gamma (N) is a view: it must outlive the layer.
struct LOCANT_API RmsNorm {
  ConstView gamma;
  float eps = 1e-6f;

  // x, y (M, N) float32 with contiguous rows; y may be x.
  void run(const ConstView& x, const View& y) const;
};

}  // namespace locant::inline v0
