// What an encoding does to the scores, in numbers: the parts of an absolute encoding's score, and
// whether scores change when all positions shift. Everything here builds whole score matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {

// With q = W_q(x + p) and k = W_k(x + p) the score c·<q_i, k_j> is the sum of these four, each
// (B, H, Lq, Lk): the first word is the query's share, the second the key's.
struct AbsoluteScores {
  std::vector<double> content_content;    // c·<W_q x_i, W_k x_j>
  std::vector<double> content_position;   // c·<W_q x_i, W_k p_j>
  std::vector<double> position_content;   // c·<W_q p_i, W_k x_j>
  std::vector<double> position_position;  // c·<W_q p_i, W_k p_j>
};

struct AbsoluteScoresOptions {
  EmbedOptions query = {}, key = {};  // where the rows of x_q and x_k stand
  std::optional<double> scale = {};   // c, instead of the encoding's 1/sqrt(d)
};

// For any encoding with an embed_dim() D.
//   x_q (B, Lq, D)   x_k (B, Lk, D)   w_q (H·d, D)   w_k (Hkv·d, D), as linear layers keep them
LOCANT_API AbsoluteScores absolute_scores(const ConstView& x_q, const ConstView& x_k,
                                          const Encoding& encoding, const ConstView& w_q,
                                          const ConstView& w_k,
                                          const AbsoluteScoresOptions& options);

struct ShiftChange {
  int64_t shift = 0;
  double worst_change = 0;   // largest |S'[i,j] - S[i,j]| of any visible pair; NaN if one is NaN
  double largest_score = 0;  // largest |S[i,j]|, to judge it by
};

// The change of the scores when all positions move by each of `shifts`. Relative encodings change
// by rounding only; absolute ones by more.
//   q (B, H, Lq, d)   k (B, Hkv, Lk, d)
// An encoding that is added to the input takes q and k for inputs (B, L, H·d), their heads side by
// side: it embeds them and W_q, W_k are the identity.
LOCANT_API std::vector<ShiftChange> shift_invariance(const ConstView& q, const ConstView& k,
                                                     const Encoding& encoding,
                                                     const AttendOptions& options,
                                                     std::span<const int64_t> shifts);

}  // namespace locant::inline v0
