#include "locant/layers/linear.h"

#include "locant/core/executor.h"
#include "locant/kernels/linear.h"
#include "locant/kernels/matmul.h"
#include "locant/layers/norm.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "linear";

}  // namespace

Linear::Linear(const ConstView& weight, const ConstView& bias)
    : Linear(std::span(&weight, 1), std::span(&bias, 1)) {}

Linear::Linear(std::span<const ConstView> weights, std::span<const ConstView> biases)
    : packed_(std::make_shared<const PackedMatrix>(weights, biases)) {}

int64_t Linear::inputs() const {
  return packed_ ? packed_->depth() : 0;
}

int64_t Linear::outputs() const {
  return packed_ ? packed_->rows() : 0;
}

int64_t Linear::bytes() const {
  return packed_ ? static_cast<int64_t>(packed_->bytes()) : 0;
}

void Linear::run(const ConstView& x, const View& y, const LinearSteps& steps) const {
  require(packed_ != nullptr, kScope, "the layer has no weights");
  require(steps.factor == nullptr || *steps.factor, kScope, "factor has no weights");
  NormWeights norm;
  if (steps.norm != nullptr) {
    norm = {steps.norm->gamma, steps.norm->beta, steps.norm->eps};
    check_layer_norm(norm, outputs());  // to the kernel, weights without beta are an rms_norm's
  }
  linear(x, *packed_,
         {.activation = steps.activation,
          .factor = steps.factor == nullptr ? nullptr : steps.factor->packed_.get(),
          .residual = steps.residual,
          .norm = norm},
         y);
}

void project(const ConstView& x, const ConstView& weight, const ConstView& bias, const View& out) {
  require(bias.data != nullptr || bias.rank == 0 || bias.size() == 0, kScope,
          "bias must not be null");
  require(!bias || (bias.rank == 1 && bias.shape[0] == out.shape[1] && bias.dtype == DType::f32 &&
                    out.dtype == DType::f32),
          kScope, "bias must be f32 (", out.shape[1], "), got ", shape_text(bias));
  matmul(x, weight, out);
  if (!bias) return;
  executor()->parallel_for(out.shape[0], [&](int64_t row, int) {
    float* y = out.at<float>(row);
    for (int64_t n = 0; n < out.shape[1]; ++n) y[n * out.strides[1]] += *bias.at<float>(n);
  });
}

}  // namespace locant::inline v0
