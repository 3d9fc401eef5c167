// Columns of a matrix, as they are and as the heads of attention.
#pragma once

#include <cstdint>

#include "locant/core/view.h"

namespace locant::inline v0 {

// Columns [begin, begin + count) of a matrix.
inline View columns(const View& m, int64_t begin, int64_t count) {
  View out = m;
  out.data = m.at<float>(0, begin);
  out.shape[1] = count;
  return out;
}

// Columns [begin, begin + heads·dim) of a matrix (T, ...) as one batch row: (1, H, T, d).
inline View heads_of(const View& m, int64_t begin, int64_t heads, int64_t dim) {
  const int64_t shape[] = {1, heads, m.shape[0], dim};
  const int64_t strides[] = {0, dim, m.strides[0], 1};
  return View(m.at<float>(0, begin), DType::f32, shape, strides);
}

}  // namespace locant::inline v0
