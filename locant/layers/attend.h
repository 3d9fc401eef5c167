// The one call: attention with a position encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "locant/attention/materialized.h"
#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/terms/dropout.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

// Who sees whom, and where positions start. The default: every query sees every key.
struct AttendOptions {
  std::span<const int64_t> lengths = {};     // (B) real tokens per row, of queries and keys alike
  std::span<const int64_t> k_lengths = {};   // (B) the same for keys only, when they differ
  bool left_padded = false;                  // real tokens stand at the end of each row
  std::span<const Sequence> sequences = {};  // or the general form: which rows belong together
  int64_t q_start = 0, k_start = 0;          // position of the first query and key of each sequence

  bool causal = false;
  int64_t window_left = -1, window_right = -1;
  int64_t prefix = 0;
  ConstView mask = {};  // broadcastable to (B, H, Lq, Lk); see terms/problem.h
  // Arbitrary position ids, (B | 1, L) or (B | 1, L, axes), int64.
  ConstView q_positions = {}, k_positions = {};
  ConstView q_segments = {}, k_segments = {};  // segment ids, (B | 1, L), int64; both or none

  std::optional<double> scale = {};  // c, the factor of all products, instead of the encoding's
  Dropout dropout = {};              // of the probabilities; lse is that without it
  View lse = {};                     // (B, H, Lq) output, or empty
  // Output, or null: the probabilities of each sequence, (H, q_len, k_len) float32, put behind what is
  // there. The materialised path gives them; out is the same with and without.
  std::vector<Tensor>* probabilities = nullptr;
  Tiling tiling = {};
};

// O = softmax(c·QKᵀ + terms)·(V + value terms).  A query with nothing to see gets zeros, lse -inf.
//   q (B, H, Lq, d)   k (B, Hkv, Lk, d)   v (B, Hkv, Lk, dv)   out (B, H, Lq, dv), any strides
// q, k and v share one type. f16 and bf16 are converted to f32 tile by tile; out is then of that
// type, rounded to nearest even, or f32, and lse is f32. Tables and masks may have any type.
LOCANT_API void attend(const ConstView& q, const ConstView& k, const ConstView& v,
                       const Encoding& encoding, const AttendOptions& options, const View& out);

// The Problem that these arguments mean, checked: errors name the argument and the numbers.
LOCANT_API Problem make_problem(const ConstView& q, const ConstView& k, const ConstView& v,
                                const AttendOptions& options);

// The same attention with everything in the open: O(Lq·Lk) memory.
LOCANT_API Materialized attend_materialized(const ConstView& q, const ConstView& k,
                                            const ConstView& v, const Encoding& encoding,
                                            const AttendOptions& options,
                                            const MaterializedOptions& extras, const View& out);

// The same by the encoding's plain-loop reference in float64; out is float64.
LOCANT_API void attend_reference(const ConstView& q, const ConstView& k, const ConstView& v,
                                 const Encoding& encoding, const AttendOptions& options,
                                 const View& out);

// The reference's loops in float32: the yardstick for tolerances.
LOCANT_API void attend_naive_f32(const ConstView& q, const ConstView& k, const ConstView& v,
                                 const Encoding& encoding, const AttendOptions& options,
                                 const View& out);

}  // namespace locant::inline v0
