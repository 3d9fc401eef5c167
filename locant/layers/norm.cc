#include "locant/layers/norm.h"

#include "locant/kernels/rows.h"

namespace locant::inline v0 {

void LayerNorm::run(const ConstView& x, const View& y) const {
  layer_norm(x, gamma, beta, eps, y);
}

void LayerNorm::run(const ConstView& x, const ConstView& residual, const View& y) const {
  layer_norm(x, residual, gamma, beta, eps, y);
}

void RmsNorm::run(const ConstView& x, const View& y) const {
  rms_norm(x, gamma, eps, y);
}

}  // namespace locant::inline v0
