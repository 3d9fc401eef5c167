// The online softmax: maximum, exponentials and sum of a tile's rows, joined to what came before;
// and its gradient, from the known sum.

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
namespace locant::inline v0 {
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

// kCount vectors from s become exp(s - m); even ones are added to lo, odd ones to hi.
template <size_t kCount, class T>
HWY_INLINE void ExpStep(T* s, Vec<T> m, Vec<T>& lo, Vec<T>& hi) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Vec<T> x[kCount];
  Unroll<kCount>([&](auto i) HWY_ATTR { x[i] = hn::Sub(hn::LoadU(d, s + i * kN), m); });
  Exp<T>(x);
  Unroll<kCount>([&](auto i) HWY_ATTR {
    hn::StoreU(x[i], d, s + i * kN);
    Vec<T>& sum = i % 2 == 0 ? lo : hi;
    sum = hn::Add(sum, x[i]);
  });
}

// s[j] = exp(s[j] - shift) on [begin, end); returns their sum.
template <class T>
HWY_INLINE T ExpRow(T* s, size_t begin, size_t end, T shift) {
  const hn::ScalableTag<T> d;
  constexpr size_t kP = kPanel<T>;
  const Vec<T> m = hn::Set(d, shift);
  Vec<T> lo = hn::Zero(d), hi = hn::Zero(d);
  size_t j = begin;
  for (; j + 2 * kP <= end; j += 2 * kP) ExpStep<4>(s + j, m, lo, hi);
  for (; j < end; j += kP) ExpStep<2>(s + j, m, lo, hi);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(lo, hi)));
}

// What SoftmaxRows needs and gives for the rows of a group.
template <class T>
struct SoftmaxStep {
  T offset[kMaxRows];  // in: belongs to all scores of the row, not yet added
  T alpha[kMaxRows];   // out: factor for earlier results
  T sum[kMaxRows];     // out: sum of the row's new exponentials
};

// Turns the scores of `rows` rows into exponentials relative to their running maxima m, and updates
// m and the running sums l.   s (rows, lds);  m, l (rows)
template <class T>
HWY_INLINE void SoftmaxRows(size_t rows, T* s, size_t lds, size_t begin, size_t end, T* m, T* l,
                            SoftmaxStep<T>& step) {
  constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  // All maxima first: a row's exponentials wait for its maximum, so the waiting is done once.
  HWY_ALIGN T shift[kMaxRows], change[(kMaxRows + kN - 1) / kN * kN] = {};
  for (size_t r = 0; r < rows; ++r) {
    const T top = RowMax(s + r * lds, begin, end) + step.offset[r];
    const T m_new = top > m[r] ? top : m[r];
    // With nothing visible so far the shift does not matter, but -inf - -inf would be NaN.
    shift[r] = m_new == kMinusInfinity ? T(0) : m_new;
    change[r] = m[r] == m_new ? T(0) : m[r] - shift[r];
    m[r] = m_new;
  }
  for (size_t r = 0; r < rows; r += kN) {
    Vec<T> x[1] = {hn::Load(d, change + r)};
    Exp<T>(x);
    hn::Store(x[0], d, change + r);
  }
  for (size_t r = 0; r < rows; ++r) {
    step.alpha[r] = change[r];
    step.sum[r] = ExpRow(s + r * lds, begin, end, shift[r] - step.offset[r]);
    l[r] = l[r] * step.alpha[r] + step.sum[r];
  }
}

// On [begin, end), whole panels:   s: S -> P = exp(S - shift);   d: <dO, v> -> P·(d + plus)
// Hidden pairs (S = -inf) give zeros by selection: their d may be NaN.
template <class T>
HWY_INLINE void ScoreGradientRow(T* s, T* d, size_t begin, size_t end, T shift, T plus) {
  const hn::ScalableTag<T> tag;
  constexpr size_t kN = kLanes<T>;
  const Vec<T> m = hn::Set(tag, shift), b = hn::Set(tag, plus);
  const Vec<T> hidden_score = hn::Set(tag, -std::numeric_limits<T>::infinity());
  for (size_t j = begin; j < end; j += 2 * kN) {
    Vec<T> x[2], p[2];
    Unroll<2>([&](auto i) HWY_ATTR {
      x[i] = hn::LoadU(tag, s + j + i * kN);
      p[i] = hn::Sub(x[i], m);
    });
    Exp<T>(p);
    Unroll<2>([&](auto i) HWY_ATTR {
      const auto hidden = hn::Eq(x[i], hidden_score);
      const Vec<T> dp = hn::Add(hn::LoadU(tag, d + j + i * kN), b);
      hn::StoreU(hn::IfThenZeroElse(hidden, p[i]), tag, s + j + i * kN);
      hn::StoreU(hn::IfThenZeroElse(hidden, hn::Mul(p[i], dp)), tag, d + j + i * kN);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SOFTMAX_INL_H_
