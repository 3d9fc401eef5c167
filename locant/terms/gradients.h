// Gradients of the terms, in the order of Terms: what the backward of attention gives to an
// encoding's pullback. Tensors are empty where the term has no such part, of f32 or f64 elsewhere.
#pragma once

#include <vector>

#include "locant/core/tensor.h"

namespace locant::inline v0 {

// Of an OffsetBias, in double: its table's values, and its slopes (empty where it has none).
struct BiasGradient {
  std::vector<double> values;                   // (heads, count)
  std::vector<double> left_slope, right_slope;  // (heads)
};

// Of a table (heads | 1, rows, width) and of what is added to x (heads, d).
struct TableGradient {
  Tensor table;
  Tensor plus;
};

struct TermGradients {
  Tensor query_plus;  // (heads, d)
  std::vector<BiasGradient> biases;
  std::vector<TableGradient> projections, values, segments;
};

}  // namespace locant::inline v0
