// The online softmax: maximum, exponentials and sum of a tile's rows, joined to what came before.

#if defined(LOCANT_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_SOFTMAX_INL_H_
#undef LOCANT_KERNELS_SOFTMAX_INL_H_
#else
#define LOCANT_KERNELS_SOFTMAX_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "locant/kernels/exp-inl.h"
#include "locant/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant {
namespace HWY_NAMESPACE {

// Largest of s[begin, end); both ends are multiples of the panel width.
template <class T>
HWY_INLINE T RowMax(const T* s, size_t begin, size_t end) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> lo = hn::Set(d, -std::numeric_limits<T>::infinity()), hi = lo;
  for (size_t j = begin; j < end; j += 2 * kN) {
    lo = hn::Max(lo, hn::LoadU(d, s + j));
    hi = hn::Max(hi, hn::LoadU(d, s + j + kN));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(lo, hi)));
}

// s[j] = exp(s[j] - shift) on [begin, end); returns their sum.
template <class T>
HWY_INLINE T ExpRow(T* s, size_t begin, size_t end, T shift) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  const Vec<T> m = hn::Set(d, shift);
  Vec<T> lo = hn::Zero(d), hi = hn::Zero(d);
  for (size_t j = begin; j < end; j += 2 * kN) {
    const Vec<T> a = Exp<T>(hn::Sub(hn::LoadU(d, s + j), m));
    const Vec<T> b = Exp<T>(hn::Sub(hn::LoadU(d, s + j + kN), m));
    hn::StoreU(a, d, s + j);
    hn::StoreU(b, d, s + j + kN);
    lo = hn::Add(lo, a);
    hi = hn::Add(hi, b);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(lo, hi)));
}

// exp of one number by the same polynomial.
template <class T>
HWY_INLINE T ExpOne(T x) {
  const hn::ScalableTag<T> d;
  return hn::GetLane(Exp<T>(hn::Set(d, x)));
}

// Turns scores into exponentials relative to the running maximum m, updates m and the running sum l,
// and returns by how much earlier results must be multiplied.
template <class T>
HWY_INLINE T SoftmaxRow(T* s, size_t begin, size_t end, T& m, T& l) {
  const T top = RowMax(s, begin, end);
  const T m_new = top > m ? top : m;
  // With nothing visible so far the shift does not matter, but -inf - -inf would be NaN.
  const T shift = m_new == -std::numeric_limits<T>::infinity() ? T(0) : m_new;
  const T alpha = m == m_new ? T(1) : ExpOne(m - shift);
  l = l * alpha + ExpRow(s, begin, end, shift);
  m = m_new;
  return alpha;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SOFTMAX_INL_H_
