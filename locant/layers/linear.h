// A linear layer: y = x·Wᵀ + b, with W packed once for the kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/kernels/activation.h"

namespace locant::inline v0 {

class Linear;
class PackedMatrix;
struct LayerNorm;

// What follows the product, while its result is still near.
struct LinearSteps {
  Activation activation = Activation::none;
  const Linear* factor = nullptr;  // of the same x, multiplied with the activation: gated layers
  ConstView residual = {};         // (M, N), added to that
  const LayerNorm* norm = nullptr;  // of the rows of the sum
};

// Copies share the packed weights; any number of threads may run one.
class LOCANT_API Linear {
 public:
  Linear() = default;

  // W (N, K), b (N) or an empty view. Both are copied: the views may go.
  Linear(const ConstView& weight, const ConstView& bias);

  // W in pieces of rows, (n_i, K) each, one under the other: several layers with one input become
  // one. A bias per piece, or an empty view.
  Linear(std::span<const ConstView> weights, std::span<const ConstView> biases);

  // False for a layer without weights; it has 0 inputs and outputs and cannot run.
  explicit operator bool() const { return packed_ != nullptr; }
  int64_t inputs() const;   // K
  int64_t outputs() const;  // N

  // y (M, N) = norm(activation(x (M, K)·Wᵀ + b)·factor(x) + residual); float32, contiguous rows any
  // stride apart.
  // The bits of a row depend neither on the other rows nor on the number of threads.
  void run(const ConstView& x, const View& y, const LinearSteps& steps = {}) const;

  // Memory of the packed weights.
  int64_t bytes() const;

 private:
  std::shared_ptr<const PackedMatrix> packed_;
};

// out (M, N) = x (M, K)·Wᵀ + b with W (N, K) as it lies: for matrices too large to keep twice, such
// as a vocabulary's.
LOCANT_API void project(const ConstView& x, const ConstView& weight, const ConstView& bias,
                        const View& out);

}  // namespace locant::inline v0
