// The fused forward on one work item: some query rows of some heads against all their keys.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/view.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

// What is the same for all work items of a call. Element type of q, k, v and out: f32 or f64.
struct ForwardCall {
  const Problem* problem = nullptr;
  const Terms* terms = nullptr;
  ConstView q, k, v;      // (B, H, Lq, d), (B, Hkv, Lk, d), (B, Hkv, Lk, dv)
  View out, lse;          // (B, H, Lq, dv), (B, H, Lq) or empty
  int64_t key_block = 0;  // keys per tile
  std::vector<bool> projection_unit_steps, value_unit_steps;  // has_unit_steps of each term's map
};

struct ForwardItem {
  int64_t sequence = 0;                  // index into problem->sequences
  int64_t head_begin = 0, head_end = 0;  // query heads that share one key/value head
  int64_t row_begin = 0, row_end = 0;    // queries, counted from the sequence's first
  int64_t key_begin = 0, key_end = 0;    // keys, counted from the sequence's first
  // Set when a sequence's keys are split over several items: unnormalised results instead of `out`.
  // (heads, rows, dv + 2) of the call's element type: O, then the maximum and the sum.
  void* partial = nullptr;
};

// Computes the item; returns the number of tiles. One per element type, each in its own file: they
// compile side by side.
int64_t run_forward_f32(const ForwardCall& call, const ForwardItem& item);
int64_t run_forward_f64(const ForwardCall& call, const ForwardItem& item);

}  // namespace locant::inline v0
