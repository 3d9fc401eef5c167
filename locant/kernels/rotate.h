// Rotation of pairs within rows: what RoPE does to q and k.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

// Some rows of some heads; all heads of a row turn by the same angles. With pair t = (a, b):
//   to[a] = from[a]·cosine[t] - from[b]·sine[t]
//   to[b] = from[b]·cosine[t] + from[a]·sine[t]
// and the columns beyond the pairs are copied. `to` may be `from` itself, with the same strides.
template <class Real>
struct RotateBlock {
  struct Strides {
    int64_t head = 0, row = 0, column = 1;
  };
  const Real* from = nullptr;  // (heads, rows, dim)
  Real* to = nullptr;          // (heads, rows, dim)
  Strides from_strides, to_strides;
  int64_t heads = 0, rows = 0, dim = 0;
  const Real* cosine = nullptr;  // (rows, pairs), contiguous
  const Real* sine = nullptr;    // (rows, pairs), contiguous
  int64_t pairs = 0;
  bool interleaved = false;  // pairs are (2t, 2t + 1) instead of (t, t + pairs)
};

void rotate_block(const RotateBlock<float>& block);
void rotate_block(const RotateBlock<double>& block);

}  // namespace locant::inline v0
