// The biases of one head on one block of keys: they are where the scores start, so they cost no
// pass of their own.

#if defined(LOCANT_KERNELS_BIAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_BIAS_INL_H_
#undef LOCANT_KERNELS_BIAS_INL_H_
#else
#define LOCANT_KERNELS_BIAS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/terms/terms.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Largest of x[0, n).
template <class T>
HWY_INLINE T LargestOf(const T* x, size_t n) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> top = hn::Set(d, -std::numeric_limits<T>::infinity());
  size_t e = 0;
  for (; e + kN <= n; e += kN) top = hn::Max(top, hn::LoadU(d, x + e));
  T largest = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; e < n; ++e) largest = std::max(largest, x[e]);
  return largest;
}

template <class T>
struct BiasBlock {
  // Larger ones cost digits: every product of QKᵀ is then added to a large number. Where all that a
  // group sees is so large, it takes the largest bias apart, and the softmax adds that. Rows of a
  // group share it, so that a bias which falls by more than this from row to row still loses some.
  static constexpr T kLarge = 2;

  const T* strip = nullptr;  // (offsets of the block): the sum of all biases; null: there are none
  T* rest = nullptr;         // (offsets of a group): what remains of large ones
  bool large = false;        // some bias of the block is

  void build(const std::vector<OffsetBias>& biases, int64_t head, const KeyBlock<T>& block,
             Arena& arena) {
    strip = nullptr;
    if (biases.empty()) return;
    const size_t n = block.offsets();
    double* sums = arena.take<double>(n);
    T* out = arena.take<T>(n);
    std::fill_n(sums, n, 0.0);
    for (const OffsetBias& bias : biases)
      bias.add_to(head, block.first_offset, static_cast<int64_t>(n), sums);
    large = false;
    for (size_t e = 0; e < n; ++e) {
      out[e] = static_cast<T>(sums[e]);
      large = large || std::abs(out[e]) > kLarge;
    }
    strip = out;
    rest = large ? arena.take<T>(block.panels * kPanel<T> + kMaxRows) : nullptr;
  }

  // The starting values of a group's scores, panel by panel, and in offset what they leave out.
  void start(const KeyBlock<T>& block, const RowGroup& group, PanelStart<T>* starts,
             T* offset) const {
    constexpr size_t kP = kPanel<T>;
    const size_t panels = group.panel_end - group.panel_begin;
    // The last row's offsets begin count - 1 before the first row's.
    const T* from = strip + StripStart(block, group.row, group.panel_begin);
    if (large) {
      const size_t before = group.count - 1, n = panels * kP + before;
      const size_t beyond = std::max(group.panel_end * kP, block.keys) - block.keys;  // no keys
      const T top = LargestOf(from - before, n - beyond);
      if (std::isfinite(top) && std::abs(top) > kLarge) {
        for (size_t e = 0; e < n; ++e) rest[e] = (from - before)[e] - top;
        from = rest + before;
        std::fill_n(offset, group.count, top);
      }
    }
    for (size_t p = 0; p < panels; ++p) starts[p] = {from + p * kP, -1};
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_BIAS_INL_H_
