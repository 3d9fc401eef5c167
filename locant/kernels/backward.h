// The fused backward on one work item: some keys of one key/value head against all queries that see
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/view.h"
#include "locant/kernels/attention_call.h"

namespace locant::inline v0 {

struct BackwardCall : AttentionCall {
  ConstView out, lse, dout;  // of the forward, (B, H, Lq, dv), (B, H, Lq); d(out) like out
  View dk, dv;               // (B, Hkv, Lk, d), (B, Hkv, Lk, dv)
  int64_t tile_rows = 0;     // query rows per tile
  // head_dim and value_dim as rows of gradients have them in scratch: whole panels of any
  // instruction set.
  size_t padded_depth = 0, padded_value = 0;
};

// One item's part of a table's gradient: rows [first_row, first_row + rows) of the table, for every
// head of the item or for all together.
struct TablePart {
  int64_t first_row = 0, rows = 0;
  bool per_head = false;
  void* data = nullptr;  // (heads | 1, rows, padded width)
};

// Everything behind the pointers is of the computing type (biases: double), zero to begin with, and
// lacks the factors c and s of the products: they come when the items are added up.
struct BackwardItem {
  int64_t sequence = 0;
  QueryRange queries;                  // all heads of the key/value head, rows that see the keys
  int64_t key_begin = 0, key_end = 0;  // counted from the sequence's first

  void* dq = nullptr;          // (heads, rows, padded_depth)
  void* query_plus = nullptr;  // (heads, padded_depth), or null
  std::vector<TablePart> projections, values, segments;
  std::vector<void*> projection_plus, segment_plus;  // each (heads, padded_depth), or null
  int64_t first_offset = 0, offsets = 0;
  double* bias = nullptr;  // (heads, offsets): sums of dS by offset, or null
};

// Computes the item and stores its rows of dk and dv; returns the number of tiles.
int64_t run_backward_f32(const BackwardCall& call, const BackwardItem& item);
int64_t run_backward_f64(const BackwardCall& call, const BackwardItem& item);

}  // namespace locant::inline v0
