// Activation functions on vectors of float.

#if defined(LOCANT_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_ACTIVATION_INL_H_
#undef LOCANT_KERNELS_ACTIVATION_INL_H_
#else
#define LOCANT_KERNELS_ACTIVATION_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/kernels/activation.h"
#include "locant/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// c[0] + c[1]·t + c[2]·t² + ...
template <size_t kCount>
HWY_INLINE Vec<float> Polynomial(Vec<float> t, const float (&c)[kCount]) {
  const hn::ScalableTag<float> d;
  Vec<float> sum = hn::Set(d, c[kCount - 1]);
  Unroll<kCount - 1>(
      [&](auto n) HWY_ATTR { sum = hn::MulAdd(sum, t, hn::Set(d, c[kCount - 2 - n])); });
  return sum;
}

// erf(x) = x·P(x²)/Q(x²) for |x| <= 3.92, where it is 1 to float32; P and Q were fitted to the
// absolute error, 2e-8 before rounding. NaN stays NaN: Min and Max alone would lose it.
HWY_INLINE Vec<float> Erf(Vec<float> x) {
  constexpr float kP[] = {1.1283790225598058f,   0.1927605321852991f,   0.05306001065066775f,
                          0.003868171321207717f, 2.8747504149218456e-4f, 2.0347533479582008e-6f};
  constexpr float kQ[] = {1.0f,
                          0.5041612421063196f,
                          0.11508315590738061f,
                          0.01517198939103632f,
                          0.0011880754195394143f,
                          3.807059912314411e-5f};
  const hn::ScalableTag<float> d;
  const Vec<float> limit = hn::Set(d, 3.92f);
  const Vec<float> held = hn::Max(hn::Min(x, limit), hn::Neg(limit));
  const Vec<float> t = hn::Mul(held, held);
  const Vec<float> y = hn::Div(hn::Mul(held, Polynomial(t, kP)), Polynomial(t, kQ));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// exp(-|x|), the half of the exponential that Exp covers.
HWY_INLINE Vec<float> ExpOfMinus(Vec<float> x) {
  Vec<float> e[1] = {hn::Neg(hn::Abs(x))};
  Exp<float>(e);
  return hn::IfThenElse(hn::Eq(x, x), e[0], x);
}

// (1 - e)/(1 + e) with e = exp(-2|x|), and the sign of x.
HWY_INLINE Vec<float> Tanh(Vec<float> x) {
  const hn::ScalableTag<float> d;
  const Vec<float> one = hn::Set(d, 1.0f), e = ExpOfMinus(hn::Add(x, x));
  return hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
}

// 1/(1 + e) for x >= 0, e/(1 + e) for x < 0, with e = exp(-|x|).
HWY_INLINE Vec<float> Sigmoid(Vec<float> x) {
  const hn::ScalableTag<float> d;
  const Vec<float> one = hn::Set(d, 1.0f), e = ExpOfMinus(x);
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

HWY_INLINE Vec<float> Activate(Activation activation, Vec<float> x) {
  const hn::ScalableTag<float> d;
  const Vec<float> half = hn::Mul(hn::Set(d, 0.5f), x);
  switch (activation) {
    case Activation::gelu:
      return hn::MulAdd(half, Erf(hn::Mul(x, hn::Set(d, 0.70710678118654752f))), half);
    case Activation::gelu_tanh: {
      const Vec<float> cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
      return hn::MulAdd(half, Tanh(hn::Mul(cubic, hn::Set(d, 0.79788456080286536f))), half);
    }
    case Activation::relu:
      return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    case Activation::tanh:
      return Tanh(x);
    case Activation::silu:
      return hn::Mul(x, Sigmoid(x));
    case Activation::sigmoid:
      return Sigmoid(x);
    case Activation::none:
      break;
  }
  return x;
}

// Calls f(std::integral_constant<activation>), for loops that should not choose in every round.
template <class F>
HWY_INLINE void WithActivation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::gelu:
      return f(std::integral_constant<Activation, Activation::gelu>{});
    case Activation::gelu_tanh:
      return f(std::integral_constant<Activation, Activation::gelu_tanh>{});
    case Activation::relu:
      return f(std::integral_constant<Activation, Activation::relu>{});
    case Activation::tanh:
      return f(std::integral_constant<Activation, Activation::tanh>{});
    case Activation::silu:
      return f(std::integral_constant<Activation, Activation::silu>{});
    case Activation::sigmoid:
      return f(std::integral_constant<Activation, Activation::sigmoid>{});
    case Activation::none:
      return f(std::integral_constant<Activation, Activation::none>{});
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_ACTIVATION_INL_H_
