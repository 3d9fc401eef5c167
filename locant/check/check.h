// Conformance: every encoding's fused attention against its own plain-loop reference, over an
// all-pairs matrix of configurations, batches, masks, layouts, positions and number types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "locant/core/fields.h"
#include "locant/core/view.h"
#include "locant/encodings/registry.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

enum class BatchKind : uint8_t { full, right_padded, left_padded, packed };
enum class VisibleKind : uint8_t { all, causal, window, causal_window, prefix };
enum class MaskKind : uint8_t {
  none,
  boolean,     // per head
  additive,    // with -inf, and with large negative values up to whole rows of -FLT_MAX
  empty_rows,  // boolean, broadcast over heads; many queries have nothing to see
};
enum class LayoutKind : uint8_t {
  bhld,       // (B, H, L, d) contiguous
  blhd,       // (B, L, H, d) contiguous, seen as (B, H, L, d)
  fused_qkv,  // q, k and v are slices of one (B, L, H + 2·Hkv, d)
};

enum class SegmentKind : uint8_t {
  none,
  runs,       // per batch row, several panels of one segment and then another
  scattered,  // one row for the whole batch, token by token
};

struct CheckCase {
  std::string encoding;
  int64_t number = 0;  // among the encoding's cases; also the seed of its data
  FieldValues fields;
  BatchKind batch = BatchKind::full;
  VisibleKind visible = VisibleKind::all;
  MaskKind mask = MaskKind::none;
  LayoutKind layout = LayoutKind::bhld;
  DType dtype = DType::f32;                  // of q, k, v and the tables: f32, f64, bf16 or f16
  DType out_dtype = DType::f32;              // the same, or f32 for bf16 and f16
  SegmentKind segments = SegmentKind::none;  // for encodings that use them
  int64_t heads = 0, kv_heads = 0, head_dim = 0, q_len = 0, k_len = 0;
  int64_t q_start = 0, k_start = 0;
  bool poisoned = false;        // NaN and infinities in padding, NaN in one key and one value
  std::optional<double> scale;  // instead of the encoding's own
  double dropout = 0;
  Tiling tiling;
  int64_t probes = 1;  // of gradients: directions for each tensor; 0: every element alone
};

// "max_distance=16 values=true | packed, causal, no mask, blhd, f32, H=4 Hkv=2 Lq=51 Lk=107 ..."
std::string describe(const CheckCase& check);

// The encoding's cases, numbered from 0: the same list on every machine.
std::vector<CheckCase> check_cases(const EncodingEntry& entry);

// The cases of its gradients, numbered likewise.
std::vector<CheckCase> gradient_cases(const EncodingEntry& entry);

struct CheckResult {
  std::string name;  // "shaw/12/avx2"
  std::string isa;
  int64_t number = 0;
  bool passed = false;
  double ratio = 0;  // worst error ÷ tolerance over out and lse; infinite for a wrong NaN or inf
  std::string failure;  // what went wrong, or empty
  std::string command;  // repeats this one
};

// Runs a case once on each of `isas`. It passes if out and lse are within
//   2 × the error of the reference's loops in float32 + 1e-6    (f32, bf16, f16)
//   1e-12 × max(1, largest |reference|)                         (f64)
// of the float64 reference, if the call took the fused kernel, and if that ran on the ISA asked
// for. For encodings that are added to the input, embed() must also equal embed_reference().
//
// 16-bit inputs are exact in float32 and float64: the reference sees the very numbers that the
// kernel converts, and the kernel computes in float32, so the tolerance is float32's. A 16-bit
// result adds one rounding to nearest, which moves the float32 result by at most half the distance
// between 16-bit numbers there; rounding never leaves a binade but for its upper end, so that is at
// most half the distance at the result. Each element is allowed that much more.
std::vector<CheckResult> run_check(const CheckCase& check, std::span<const std::string> isas);

// The worst error of one tensor's gradient: against differences in f64, relative to the length of
// the gradient, and of the case's type against f64, relative to the largest element.
struct GradientError {
  std::string tensor;  // q, k, v or a parameter
  double differences = 0, rounding = 0;
};

struct GradientResult : CheckResult {
  std::vector<GradientError> errors;
};

// Runs the backward of a case once on each of `isas`, in f64 and in the case's type.
//
// f64: along random directions of each tensor, <gradient, direction> must equal the fourth-order
// central difference of <out, dout> with out from the encoding's float64 reference, to 1e-8 of the
// gradient's length + 1 (what differences can tell: rounding of sums of about 1e4 products, over a
// step of 3e-5). A direction reaches every element, or each in turn.
//
// f32: within 2e-5 of the f64 gradient, relative to its largest element, which has just been
// verified: some hundred roundings of 6e-8, of terms that cancel; plus four times what a rounding
// of out changes. Both are given the same rounded out. f16 and bf16 are computed in f32, so the
// same holds; results that are stored in 16 bits may differ by half a unit in their last place
// more.
std::vector<GradientResult> run_gradient_check(const CheckCase& check,
                                               std::span<const std::string> isas);

}  // namespace locant::inline v0
