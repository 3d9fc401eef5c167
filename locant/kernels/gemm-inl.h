// The one micro-kernel: a few rows of A times a panel of B, accumulators in registers.
// QKᵀ, P·V, q·Tᵀ, T·Kᵀ and W·A are all this product.

#if defined(LOCANT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_GEMM_INL_H_
#undef LOCANT_KERNELS_GEMM_INL_H_
#else
#define LOCANT_KERNELS_GEMM_INL_H_
#endif

#include <cstddef>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Vec = hn::Vec<hn::ScalableTag<T>>;

template <class T>
constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());

// A panel is two vectors wide. Six rows by two vectors fill 12 of 16 registers with accumulators:
// enough independent sums to hide the latency of two FMA units, with room for B and a broadcast.
template <class T>
constexpr size_t kPanel = 2 * kLanes<T>;
constexpr size_t kMaxRows = 6;

// Calls f(0), f(1), ... f(N-1) with compile-time indices. Loops over accumulators must be unrolled
// before the compiler decides what lives in memory: with an ordinary loop GCC 12 spills them all.
template <class F, size_t... kIndex>
HWY_INLINE void UnrollOver(F&& f, std::index_sequence<kIndex...>) {
  (f(std::integral_constant<size_t, kIndex>{}), ...);
}
template <size_t kCount, class F>
HWY_INLINE void Unroll(F&& f) {
  UnrollOver(f, std::make_index_sequence<kCount>{});
}

// C[r, 0:panel] = init[r, 0:panel] + sum_t A[r, t]·B[t, 0:panel]
//   A (kRows, depth), rows lda apart;  B (depth, panel) contiguous;  init null: zeros; may be C.
template <size_t kRows, class T>
HWY_INLINE void GemmPanel(size_t depth, const T* HWY_RESTRICT a, ptrdiff_t lda,
                          const T* HWY_RESTRICT b, const T* init, ptrdiff_t ld_init, T* c,
                          ptrdiff_t ldc) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> lo[kRows], hi[kRows];
  if (init != nullptr) {
    Unroll<kRows>([&](auto r) HWY_ATTR {
      lo[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init);
      hi[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init + kN);
    });
  } else {
    Unroll<kRows>([&](auto r) HWY_ATTR { lo[r] = hi[r] = hn::Zero(d); });
  }
  for (size_t t = 0; t < depth; ++t) {
    const Vec<T> b_lo = hn::Load(d, b + t * 2 * kN);
    const Vec<T> b_hi = hn::Load(d, b + t * 2 * kN + kN);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const Vec<T> x = hn::Set(d, a[static_cast<ptrdiff_t>(r) * lda + static_cast<ptrdiff_t>(t)]);
      lo[r] = hn::MulAdd(x, b_lo, lo[r]);
      hi[r] = hn::MulAdd(x, b_hi, hi[r]);
    });
  }
  Unroll<kRows>([&](auto r) HWY_ATTR {
    hn::StoreU(lo[r], d, c + static_cast<ptrdiff_t>(r) * ldc);
    hn::StoreU(hi[r], d, c + static_cast<ptrdiff_t>(r) * ldc + kN);
  });
}

// <a, b>
template <class T>
HWY_INLINE T Dot(const T* a, const T* b, size_t n) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> lo = hn::Zero(d), hi = hn::Zero(d);
  size_t t = 0;
  for (; t + 2 * kN <= n; t += 2 * kN) {
    lo = hn::MulAdd(hn::LoadU(d, a + t), hn::LoadU(d, b + t), lo);
    hi = hn::MulAdd(hn::LoadU(d, a + t + kN), hn::LoadU(d, b + t + kN), hi);
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(lo, hi)));
  for (; t < n; ++t) sum += a[t] * b[t];
  return sum;
}

// Calls f(std::integral_constant<rows>) for 1 <= rows <= kMaxRows.
template <class F>
HWY_INLINE void WithRows(size_t rows, F&& f) {
  switch (rows) {
    case 1:
      return f(std::integral_constant<size_t, 1>{});
    case 2:
      return f(std::integral_constant<size_t, 2>{});
    case 3:
      return f(std::integral_constant<size_t, 3>{});
    case 4:
      return f(std::integral_constant<size_t, 4>{});
    case 5:
      return f(std::integral_constant<size_t, 5>{});
    default:
      return f(std::integral_constant<size_t, 6>{});
  }
}

// The size of the next group when `left` rows remain: six, but never a last group of fewer than
// four if that can be avoided, since few accumulators leave the FMA units waiting.
HWY_INLINE size_t NextRows(size_t left) {
  if (left > kMaxRows && left < 2 * kMaxRows - 2) return (left + 1) / 2;
  return left < kMaxRows ? left : kMaxRows;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_GEMM_INL_H_
