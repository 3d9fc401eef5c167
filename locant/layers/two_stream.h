// XLNet's two-stream attention: a content stream h, which sees the token at its own position, and a
// query stream g, which must predict that token and sees only where it stands.
#pragma once

#include <cstdint>
#include <optional>

#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

struct TwoStreamInputs {
  ConstView q_h;   // (B, H, L, d) queries of the content stream
  ConstView q_g;   // (B, H, T, d) queries of the T targets; T = L without a target_mapping
  ConstView k, v;  // (B, Hkv, M + L, d) and (.., dv) of the content stream, after M of its memory
};

// Masks hide where they are not 0, as XLNet's do; they are bool or floating point.
struct TwoStreamOptions {
  ConstView perm_mask = {};       // (B | 1, L, L): query i must not see key j
  ConstView input_mask = {};      // (B | 1, L): padding
  ConstView target_mapping = {};  // (B | 1, T, L) floating point: target t stands at position l
  ConstView segments = {};        // (B | 1, L) int64; the memory is in segment 0
  bool causal = false;            // attn_type "uni"
  int64_t window_left = -1;       // XLNet::same_length_window
  std::optional<double> scale = {};
  Tiling tiling = {};
};

//   out_h = attend(q_h, k, v), visible: what the masks leave, and always its own position
//   out_g = target_mapping·attend(target_mappingᵀ·q_g, k, v), visible: what the masks leave
//
// out_h (B, H, L, dv), out_g (B, H, T, dv). The memory is hidden from nobody. With perm_mask or
// input_mask the pairs are written out, one byte each: XLNet's masks are of that size already.
LOCANT_API void two_stream(const TwoStreamInputs& in, const Encoding& encoding,
                           const TwoStreamOptions& options, const View& out_h, const View& out_g);

}  // namespace locant::inline v0
