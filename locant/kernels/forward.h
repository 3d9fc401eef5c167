// The fused forward on one work item: some query rows of some heads against all their keys.
#pragma once

#include <cstdint>

#include "locant/core/view.h"
#include "locant/kernels/attention_call.h"

namespace locant::inline v0 {

struct ForwardCall : AttentionCall {
  View out, lse;  // (B, H, Lq, dv), (B, H, Lq) or empty
};

struct ForwardItem {
  int64_t sequence = 0;  // index into problem->sequences
  QueryRange queries;
  int64_t key_begin = 0, key_end = 0;  // keys, counted from the sequence's first
  // Set when a sequence's keys are split over several items: unnormalised results instead of `out`.
  // (heads, rows, dv + 2) of the computing type: O, then the maximum and the sum.
  void* partial = nullptr;
};

// Computes the item; returns the number of tiles. One per element type, each in its own file: they
// compile side by side.
int64_t run_forward_f32(const ForwardCall& call, const ForwardItem& item);
int64_t run_forward_f64(const ForwardCall& call, const ForwardItem& item);

// Fills the call's table of a projection, for one head.
void pack_table_f32(const ForwardCall& call, size_t projection, int64_t head);
void pack_table_f64(const ForwardCall& call, size_t projection, int64_t head);

}  // namespace locant::inline v0
