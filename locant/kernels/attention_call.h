// What is the same for all work items of a fused call, forward or backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "locant/core/memory.h"
#include "locant/core/view.h"
#include "locant/kernels/isa_dispatch.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// Rows of a query-side table, times the term's scale, as panels of columns: packed once for all
// items of a call. A panel holds 32 rows or fewer, a power of two, by the instruction set.
struct PackedTable {
  Block data;            // (heads | 1, panels, d, panel) of the computing type, up to whole 32 rows
  int64_t first = 0;     // the table's row at which panels begin
  int64_t count = 0;     // rows
  int64_t depth = 0;     // d
  int64_t per_head = 0;  // elements of a head; 0: all share one table

  // Where the panel begins whose first row is `row`.
  template <class T>
  const T* at(int64_t head, int64_t row) const {
    return reinterpret_cast<const T*>(data.data()) + head * per_head + (row - first) * depth;
  }
};

// Computes in f64, with q, k and v of that type, or in f32, where they may be f16 or bf16 too.
struct AttentionCall {
  const Problem* problem = nullptr;
  const Terms* terms = nullptr;
  ConstView q, k, v;      // (B, H, Lq, d), (B, Hkv, Lk, d), (B, Hkv, Lk, dv)
  int64_t key_block = 0;  // keys per tile
  std::vector<bool> projection_unit_steps, value_unit_steps;  // has_unit_steps of each term's map
  std::vector<PackedTable> tables;  // of each projection, without data if items pack it; or empty
  // All steps of a call run on the instruction set that it began with: tables are packed for it.
  size_t isa = isa_index();

  const PackedTable* table(size_t projection) const {
    return tables.empty() || tables[projection].data.data() == nullptr ? nullptr
                                                                       : &tables[projection];
  }
};

// Queries of heads that share one key/value head; rows are counted from the sequence's first.
struct QueryRange {
  int64_t head_begin = 0, head_end = 0;
  int64_t row_begin = 0, row_end = 0;
  size_t heads() const { return static_cast<size_t>(head_end - head_begin); }
  size_t rows() const { return static_cast<size_t>(row_end - row_begin); }
};

}  // namespace locant::inline v0
