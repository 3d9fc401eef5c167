// How fused calls, forward and backward, are cut into work items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "locant/core/view.h"
#include "locant/kernels/attention_call.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

constexpr int64_t kWidestPanel = 32;  // two 512-bit vectors of floats
constexpr int64_t kItemsWanted = 16;  // per sequence, so that few heads still fill all threads

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

// Tile sizes beyond the lengths are the lengths: sums with them could leave 64 bits.
inline Tiling within_lengths(const Problem& problem, Tiling tiling) {
  tiling.rows = std::min(tiling.rows, std::max<int64_t>(1, problem.q_len));
  tiling.keys = std::min(tiling.keys, std::max<int64_t>(1, problem.k_len));
  return tiling;
}

inline AttentionCall attention_call(const Problem& problem, const Terms& terms, const ConstView& q,
                                    const ConstView& k, const ConstView& v, int64_t key_block) {
  AttentionCall call{&problem, &terms, q, k, v, round_up(key_block, kWidestPanel), {}, {}, {}};
  for (const Projection& term : terms.projections)
    call.projection_unit_steps.push_back(has_unit_steps(term.map));
  for (const ValueTerm& term : terms.values)
    call.value_unit_steps.push_back(has_unit_steps(term.map));
  return call;
}

// Which rows of a (B, H, L, …) tensor belong to a sequence; the others are padding.
class UsedRows {
 public:
  UsedRows(int64_t batch, int64_t length)
      : length_(length), used_(static_cast<size_t>(batch * length), 0) {}

  void add(int64_t batch, int64_t begin, int64_t count) {
    std::fill_n(used_.begin() + batch * length_ + begin, count, uint8_t{1});
  }

  // f(batch, row) for every row of padding.
  template <class F>
  void for_others(const F& f) const {
    for (size_t at = 0; at < used_.size(); ++at)
      if (!used_[at]) f(static_cast<int64_t>(at) / length_, static_cast<int64_t>(at) % length_);
  }

  // Zeros in the padding of view (B, H, L, d).
  void clear_others(const View& view) const {
    const bool contiguous = view.strides[3] == 1 || view.shape[3] == 1;
    const size_t bytes = static_cast<size_t>(view.shape[3]) * size_of(view.dtype);
    for_others([&](int64_t b, int64_t row) {
      for (int64_t h = 0; h < view.shape[1]; ++h) {
        if (contiguous) {  // zero is all bits zero in every floating type
          std::memset(view.row(b, h, row), 0, bytes);
          continue;
        }
        for (int64_t c = 0; c < view.shape[3]; ++c) set_element(view, 0, b, h, row, c);
      }
    });
  }

 private:
  int64_t length_;
  std::vector<uint8_t> used_;  // (B, L)
};

}  // namespace locant::inline v0
