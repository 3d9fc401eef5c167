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
#include "locant/kernels/stored-inl.h"

// Before a loop: four rounds of it between two jumps. Counting costs nothing on a core of one's
// own, but a tenth of the speed where another thread shares its decoder. (With rounds in templates,
// as below, GCC 12 moves accumulators from register to register.)
#undef LOCANT_FOUR_AT_ONCE
#if HWY_COMPILER_CLANG
#define LOCANT_FOUR_AT_ONCE _Pragma("clang loop unroll_count(4)")
#elif HWY_COMPILER_GCC
#define LOCANT_FOUR_AT_ONCE _Pragma("GCC unroll 4")
#else
#define LOCANT_FOUR_AT_ONCE
#endif

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
// AVX-512 has 32 registers, and eight rows read a panel less often.
template <class T>
constexpr size_t kPanel = 2 * kLanes<T>;
constexpr size_t kMaxRows = HWY_TARGET <= HWY_AVX3 ? 8 : 6;

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
//   A (kRows, depth), element (r, t) at a[r·a_row + t·a_step];  B (depth, panel) contiguous;
//   init null: zeros; may be C.
template <size_t kRows, class T>
HWY_INLINE void GemmPanel(size_t depth, const T* HWY_RESTRICT a, ptrdiff_t a_row, ptrdiff_t a_step,
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
  LOCANT_FOUR_AT_ONCE
  for (size_t t = 0; t < depth; ++t) {
    const Vec<T> b_lo = hn::Load(d, b + t * 2 * kN);
    const Vec<T> b_hi = hn::Load(d, b + t * 2 * kN + kN);
    const T* column = a + static_cast<ptrdiff_t>(t) * a_step;
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const Vec<T> x = hn::Set(d, column[static_cast<ptrdiff_t>(r) * a_row]);
      lo[r] = hn::MulAdd(x, b_lo, lo[r]);
      hi[r] = hn::MulAdd(x, b_hi, hi[r]);
    });
  }
  Unroll<kRows>([&](auto r) HWY_ATTR {
    hn::StoreU(lo[r], d, c + static_cast<ptrdiff_t>(r) * ldc);
    hn::StoreU(hi[r], d, c + static_cast<ptrdiff_t>(r) * ldc + kN);
  });
}

// The same with rows of A that are contiguous, lda apart.
template <size_t kRows, class T>
HWY_INLINE void GemmPanel(size_t depth, const T* HWY_RESTRICT a, ptrdiff_t lda,
                          const T* HWY_RESTRICT b, const T* init, ptrdiff_t ld_init, T* c,
                          ptrdiff_t ldc) {
  GemmPanel<kRows>(depth, a, lda, 1, b, init, ld_init, c, ldc);
}

// C[r, 0:N] = sum_t A[r, t]·B[t, 0:N], for one of a panel's two vectors: b is at it.
template <size_t kRows, class T>
HWY_INLINE void GemmHalfPanel(size_t depth, const T* HWY_RESTRICT a, ptrdiff_t lda,
                              const T* HWY_RESTRICT b, T* c, ptrdiff_t ldc) {
  const hn::ScalableTag<T> d;
  Vec<T> sum[kRows];
  Unroll<kRows>([&](auto r) HWY_ATTR { sum[r] = hn::Zero(d); });
  LOCANT_FOUR_AT_ONCE
  for (size_t t = 0; t < depth; ++t) {
    const Vec<T> x = hn::Load(d, b + t * kPanel<T>);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const T* row = a + static_cast<ptrdiff_t>(r) * lda;
      sum[r] = hn::MulAdd(hn::Set(d, row[t]), x, sum[r]);
    });
  }
  Unroll<kRows>([&](auto r)
                    HWY_ATTR { hn::StoreU(sum[r], d, c + static_cast<ptrdiff_t>(r) * ldc); });
}

// <a, b>, where b may be stored in another type.
template <class T, class S>
HWY_INLINE T Dot(const T* a, const S* b, size_t n) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> lo = hn::Zero(d), hi = hn::Zero(d);
  size_t t = 0;
  for (; t + 2 * kN <= n; t += 2 * kN) {
    lo = hn::MulAdd(hn::LoadU(d, a + t), LoadAs(d, b + t), lo);
    hi = hn::MulAdd(hn::LoadU(d, a + t + kN), LoadAs(d, b + t + kN), hi);
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(lo, hi)));
  for (; t < n; ++t) sum += a[t] * static_cast<T>(b[t]);
  return sum;
}

// Calls f(std::integral_constant<rows>) for 1 <= rows <= kMaxRows.
template <size_t kMost = kMaxRows, class F>
HWY_INLINE void WithRows(size_t rows, F&& f) {
  if constexpr (kMost > 1)
    if (rows < kMost) return WithRows<kMost - 1>(rows, f);
  f(std::integral_constant<size_t, kMost>{});
}

// The size of the next group when `left` rows remain: kMaxRows, but never a last group of fewer
// than four if that can be avoided, since few accumulators leave the FMA units waiting.
HWY_INLINE size_t NextRows(size_t left) {
  if (left > kMaxRows && left < 2 * kMaxRows - 2) return (left + 1) / 2;
  return left < kMaxRows ? left : kMaxRows;
}

// Whether A is read as it lies, or its transpose.
enum class Read { rows, columns };

// C += A·B   or   C += Aᵀ·B
//   A (rows, depth), or (depth, rows) for its columns, rows of memory lda apart;
//   B (panels, depth, panel), panels b_panel apart;  C (rows, panels·panel), rows ldc apart.
template <Read kRead, class T>
HWY_NOINLINE void AddProduct(size_t rows, size_t depth, const T* a, size_t lda, const T* b,
                             size_t b_panel, size_t panels, T* c, size_t ldc) {
  constexpr size_t kP = kPanel<T>;
  const ptrdiff_t a_row = kRead == Read::rows ? static_cast<ptrdiff_t>(lda) : 1;
  const ptrdiff_t a_step = kRead == Read::rows ? 1 : static_cast<ptrdiff_t>(lda);
  for (size_t row = 0, n; row < rows; row += n) {
    n = NextRows(rows - row);
    WithRows(n, [&](auto count) HWY_ATTR {
      for (size_t p = 0; p < panels; ++p)
        GemmPanel<count>(depth, a, a_row, a_step, b + p * b_panel, c + p * kP,
                         static_cast<ptrdiff_t>(ldc), c + p * kP, static_cast<ptrdiff_t>(ldc));
    });
    a += static_cast<ptrdiff_t>(n) * a_row;
    c += n * ldc;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_GEMM_INL_H_
