// What is the same for all work items of a fused call, forward or backward.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/view.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// Computes in f64, with q, k and v of that type, or in f32, where they may be f16 or bf16 too.
struct AttentionCall {
  const Problem* problem = nullptr;
  const Terms* terms = nullptr;
  ConstView q, k, v;      // (B, H, Lq, d), (B, Hkv, Lk, d), (B, Hkv, Lk, dv)
  int64_t key_block = 0;  // keys per tile
  std::vector<bool> projection_unit_steps, value_unit_steps;  // has_unit_steps of each term's map
};

// Queries of heads that share one key/value head; rows are counted from the sequence's first.
struct QueryRange {
  int64_t head_begin = 0, head_end = 0;
  int64_t row_begin = 0, row_end = 0;
  size_t heads() const { return static_cast<size_t>(head_end - head_begin); }
  size_t rows() const { return static_cast<size_t>(row_end - row_begin); }
};

}  // namespace locant::inline v0
