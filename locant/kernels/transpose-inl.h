// A square of 16-byte vectors, transposed in registers. Not for the scalar target.

#if defined(LOCANT_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_TRANSPOSE_INL_H_
#undef LOCANT_KERNELS_TRANSPOSE_INL_H_
#else
#define LOCANT_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

template <class T>
using SquareTag = hn::Full128<T>;
template <class T>
constexpr size_t kSquare = 16 / sizeof(T);  // rows and columns

// Lane c of x[r] becomes lane r of x[c].
HWY_INLINE void Transpose(hn::Vec<SquareTag<float>>* x) {
  const SquareTag<float> d;
  const auto ab_lo = hn::InterleaveLower(d, x[0], x[1]), ab_hi = hn::InterleaveUpper(d, x[0], x[1]);
  const auto cd_lo = hn::InterleaveLower(d, x[2], x[3]), cd_hi = hn::InterleaveUpper(d, x[2], x[3]);
  x[0] = hn::ConcatLowerLower(d, cd_lo, ab_lo);
  x[1] = hn::ConcatUpperUpper(d, cd_lo, ab_lo);
  x[2] = hn::ConcatLowerLower(d, cd_hi, ab_hi);
  x[3] = hn::ConcatUpperUpper(d, cd_hi, ab_hi);
}

HWY_INLINE void Transpose(hn::Vec<SquareTag<double>>* x) {
  const SquareTag<double> d;
  const auto lower = hn::InterleaveLower(d, x[0], x[1]);
  x[1] = hn::InterleaveUpper(d, x[0], x[1]);
  x[0] = lower;
}

#endif  // HWY_TARGET != HWY_SCALAR

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_TRANSPOSE_INL_H_
