// GemmPanel that asks for B before it is read, and for few rows of A, where reading B from memory
// is the limit.

#if defined(LOCANT_KERNELS_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_STREAM_INL_H_
#undef LOCANT_KERNELS_STREAM_INL_H_
#else
#define LOCANT_KERNELS_STREAM_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

constexpr size_t kLine = 64 / sizeof(float);  // floats of a cache line

// What is read after the products of a group of rows with a panel: the next panel, of which each
// group asks for a share, and the next group.
struct Ahead {
  const float* at;
  const float* end;
  size_t share;                 // lines per group
  const float* rows = nullptr;  // the next kMaxRows rows of A, if they come from far away

  // Into the first level.
  HWY_INLINE void ask_at_once() {
    const float* until = std::min(at + share * kLine, end);
    for (; at < until; at += kLine) Prefetch(at);
  }
};

// GemmPanel with rows of A that are contiguous, lda apart. It asks for what is ahead little by
// little, so that no burst keeps the products waiting: for its share of the panel into the second
// level, as the first is full of this one, and for a line of each of the next rows once in a line's
// rounds.
template <size_t kRows>
HWY_INLINE void GemmPanelAhead(size_t depth, const float* HWY_RESTRICT a, ptrdiff_t lda,
                               const float* HWY_RESTRICT b, const float* init, ptrdiff_t ld_init,
                               float* c, ptrdiff_t ldc, Ahead& ahead) {
  const hn::ScalableTag<float> d;
  constexpr size_t kN = kLanes<float>;
  constexpr size_t kRounds = 8;  // between two requests
  Vec<float> lo[kRows], hi[kRows];
  Unroll<kRows>([&](auto r) HWY_ATTR {
    lo[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init);
    hi[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init + kN);
  });
  const auto round = [&](size_t t) HWY_ATTR {
    const Vec<float> b_lo = hn::Load(d, b + t * 2 * kN), b_hi = hn::Load(d, b + t * 2 * kN + kN);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const Vec<float> x =
          hn::Set(d, a[static_cast<ptrdiff_t>(r) * lda + static_cast<ptrdiff_t>(t)]);
      lo[r] = hn::MulAdd(x, b_lo, lo[r]);
      hi[r] = hn::MulAdd(x, b_hi, hi[r]);
    });
  };
  const size_t lines = (ahead.share * kRounds + depth - 1) / depth;  // per request
  constexpr size_t kNext = kMaxRows * kRounds / kLine;               // rows per request
  const float* next = ahead.rows;
  for (size_t t = 0; t + kRounds <= depth; t += kRounds) {
    const float* until = std::min(ahead.at + lines * kLine, ahead.end);
    for (; ahead.at < until; ahead.at += kLine) PrefetchFar(ahead.at);
    if (next != nullptr) {
      const float* row = next + static_cast<ptrdiff_t>(t % kLine / kRounds * kNext) * lda + t;
      Unroll<kNext>([&](auto r) HWY_ATTR { Prefetch(row + static_cast<ptrdiff_t>(r) * lda); });
    }
    LOCANT_FOUR_AT_ONCE
    for (size_t s = 0; s < kRounds; ++s) round(t + s);
  }
  for (size_t t = depth / kRounds * kRounds; t < depth; ++t) round(t);
  Unroll<kRows>([&](auto r) HWY_ATTR {
    hn::StoreU(lo[r], d, c + static_cast<ptrdiff_t>(r) * ldc);
    hn::StoreU(hi[r], d, c + static_cast<ptrdiff_t>(r) * ldc + kN);
  });
}

// How far ahead weights are asked for where few rows use them: then memory is the limit, and
// hardware prefetchers stop at the ends of pages.
constexpr size_t kWeightsAhead = 3072 / sizeof(float);

// GemmPanel with rows of A that are contiguous, lda apart: the same sums in the same order. `next`
// is the panel that is read after this one.
template <size_t kRows>
HWY_INLINE void StreamPanel(size_t depth, const float* HWY_RESTRICT a, ptrdiff_t lda,
                            const float* HWY_RESTRICT b, const float* next, const float* init,
                            ptrdiff_t ld_init, float* c, ptrdiff_t ldc) {
  const hn::ScalableTag<float> d;
  constexpr size_t kN = kLanes<float>;
  Vec<float> lo[kRows], hi[kRows];
  Unroll<kRows>([&](auto r) HWY_ATTR {
    lo[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init);
    hi[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init + kN);
  });
  constexpr size_t kStepsAhead = kWeightsAhead / (2 * kN);
  const size_t own = depth > kStepsAhead ? depth - kStepsAhead : 0;  // what is ahead is this panel
  LOCANT_FOUR_AT_ONCE
  for (size_t t = 0; t < depth; ++t, b += 2 * kN) {
    const float* ahead = t < own ? b + kWeightsAhead : next + (t - own) * 2 * kN;
    if (2 * kN >= kLine || t % (kLine / (2 * kN)) == 0) Prefetch(ahead);
    if constexpr (2 * kN > kLine) Prefetch(ahead + kLine);
    const Vec<float> b_lo = hn::Load(d, b), b_hi = hn::Load(d, b + kN);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const Vec<float> x =
          hn::Set(d, a[static_cast<ptrdiff_t>(r) * lda + static_cast<ptrdiff_t>(t)]);
      lo[r] = hn::MulAdd(x, b_lo, lo[r]);
      hi[r] = hn::MulAdd(x, b_hi, hi[r]);
    });
  }
  Unroll<kRows>([&](auto r) HWY_ATTR {
    hn::StoreU(lo[r], d, c + static_cast<ptrdiff_t>(r) * ldc);
    hn::StoreU(hi[r], d, c + static_cast<ptrdiff_t>(r) * ldc + kN);
  });
}

// The same for kPanels panels side by side, b_panel apart in memory and one after another in y.
template <size_t kRows, size_t kPanels>
HWY_INLINE void StreamPanels(size_t depth, const float* HWY_RESTRICT a, ptrdiff_t lda,
                             const float* HWY_RESTRICT b, size_t b_panel, const float* init,
                             ptrdiff_t ld_init, float* c, ptrdiff_t ldc) {
  const hn::ScalableTag<float> d;
  constexpr size_t kN = kLanes<float>;
  constexpr size_t kTiles = kRows * kPanels;
  Vec<float> lo[kTiles], hi[kTiles];
  Unroll<kTiles>([&](auto i) HWY_ATTR {
    const float* from = init + static_cast<ptrdiff_t>(i / kPanels) * ld_init + i % kPanels * 2 * kN;
    lo[i] = hn::LoadU(d, from);
    hi[i] = hn::LoadU(d, from + kN);
  });
  LOCANT_FOUR_AT_ONCE
  for (size_t t = 0; t < depth; ++t, b += 2 * kN)
    Unroll<kTiles>([&](auto i) HWY_ATTR {
      const float* w = b + i % kPanels * b_panel;
      const Vec<float> x =
          hn::Set(d, a[static_cast<ptrdiff_t>(i / kPanels) * lda + static_cast<ptrdiff_t>(t)]);
      lo[i] = hn::MulAdd(x, hn::Load(d, w), lo[i]);
      hi[i] = hn::MulAdd(x, hn::Load(d, w + kN), hi[i]);
    });
  Unroll<kTiles>([&](auto i) HWY_ATTR {
    float* to = c + static_cast<ptrdiff_t>(i / kPanels) * ldc + i % kPanels * 2 * kN;
    hn::StoreU(lo[i], d, to);
    hn::StoreU(hi[i], d, to + kN);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_STREAM_INL_H_
