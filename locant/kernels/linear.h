// y = norm(activation(x·Wᵀ + b)·(x·Fᵀ + f) + residual), with W and F packed once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "locant/core/memory.h"
#include "locant/core/view.h"
#include "locant/kernels/activation.h"
#include "locant/kernels/rows.h"

namespace locant::inline v0 {

// A row of W in the memory of the piece that it came with.
struct WeightRow {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, col_stride = 0;
  size_t piece = 0;
};

// How an instruction set wants W of a given depth: columns in a panel, depth in a block; and how
// many rows of x meet a panel at a time.
struct LinearShape {
  int64_t panel = 0, block = 0, rows = 0;
};

// W (N, K) float32 as the micro-kernel reads it, with its bias:
//   for each block of the depth: (panels, depth of the block, panel), the last panel filled up with
//   zeros. The shape depends on the instruction set, so the one that packed it runs it.
class PackedMatrix {
 public:
  // W's rows come in pieces (n_i, K), their biases in pieces (n_i); no biases at all means zeros.
  // Both are f32 with any strides, or f16, bf16 or f64.
  PackedMatrix(std::span<const ConstView> weights, std::span<const ConstView> biases);

  int64_t rows() const { return rows_; }    // N
  int64_t depth() const { return depth_; }  // K
  size_t isa() const { return isa_; }
  const LinearShape& shape() const { return shape_; }
  int64_t panels() const { return (rows_ + shape_.panel - 1) / shape_.panel; }
  size_t bytes() const;

  // Depth of the block that starts at t.
  int64_t block(int64_t t) const { return std::min(shape_.block, depth_ - t); }

  // Panel `p` of the block of the depth that starts at t.
  const float* at(int64_t t, int64_t p) const {
    return reinterpret_cast<const float*>(data_.data()) + panels() * shape_.panel * t +
           p * shape_.panel * block(t);
  }
  const float* bias() const { return bias_.data(); }  // (panels·panel)

 private:
  int64_t rows_ = 0, depth_ = 0;
  LinearShape shape_;
  size_t isa_ = 0;
  Block data_;  // large ones on huge pages: every product walks through them
  std::vector<float> bias_;
};

// Panels of W that are read at once. With up to three rows memory is the limit; hardware
// prefetchers read two or three streams faster than one, and faster than with anything asked for.
constexpr int64_t panels_side_by_side(int64_t rows) {
  return rows > 3 ? 1 : rows == 3 ? 2 : 3;
}

struct LinearOptions {
  Activation activation = Activation::none;
  const PackedMatrix* factor = nullptr;  // (N, K): its product is multiplied with the activation
  ConstView residual = {};               // (M, N), added to that
  NormWeights norm = {};                 // of the rows of the sum; none: they stay as they are
};

// y (M, N) = norm(activation(x (M, K)·Wᵀ + b)·(x·Fᵀ + f) + residual); float32, rows of contiguous
// elements.
// Threaded; the bits of a row depend neither on the number of threads nor on the other rows.
void linear(const ConstView& x, const PackedMatrix& w, const LinearOptions& options, const View& y);

}  // namespace locant::inline v0
