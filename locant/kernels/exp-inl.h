// exp(x) for x <= 0, within 3 units in the last place for x > -20 and within 5 everywhere; 0 where
// the result would be subnormal, NaN for NaN. Highway's own Exp takes twice as long.

#if defined(LOCANT_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_EXP_INL_H_
#undef LOCANT_KERNELS_EXP_INL_H_
#else
#define LOCANT_KERNELS_EXP_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Coefficients of f^0, f^1, ... for exp(f), |f| <= ln(2)/2.
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  // 1.5·2^23 rounds to an integer when added; + the exponent's bias.
  static constexpr float kMagic = 12582912.0f + 127.0f;
  static constexpr int kMantissaBits = 23;
  static constexpr float kSmallest = 12582912.0f + 2.0f;  // the magic sum of exponent -125
  // ln 2 in two parts; the first has so few bits that its product with n is exact.
  static constexpr float kLn2Hi = 0.693359375f;
  static constexpr float kLn2Lo = -2.12194440e-4f;
  static constexpr float kLn2 = 0.693147181f;
  // Minimax of the relative error (9e-8) with constant term 1: exp(0) = 1 exactly.
  static constexpr float kPoly[] = {1.0f,         0.999999702f,  0.499991477f,
                                    0.166676387f, 0.0418981761f, 0.00829027779f};
};

template <>
struct ExpConstants<double> {
  static constexpr double kMagic = 6755399441055744.0 + 1023.0;  // 1.5·2^52 + bias
  static constexpr int kMantissaBits = 52;
  static constexpr double kSmallest = 6755399441055744.0 + 2.0;
  static constexpr double kLn2Hi = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Lo = 0x1.a39ef35793c76p-33;
  // Taylor: the remainder f^13/13! is below 2e-16.
  static constexpr double kPoly[] = {1.0,
                                     1.0,
                                     1.0 / 2,
                                     1.0 / 6,
                                     1.0 / 24,
                                     1.0 / 120,
                                     1.0 / 720,
                                     1.0 / 5040,
                                     1.0 / 40320,
                                     1.0 / 362880,
                                     1.0 / 3628800,
                                     1.0 / 39916800,
                                     1.0 / 479001600};
};

// x - n·ln 2
template <class T>
HWY_INLINE Vec<T> Reduce(Vec<T> x, Vec<T> n) {
  using C = ExpConstants<T>;
  const hn::ScalableTag<T> d;
#if HWY_NATIVE_FMA
  // The product is exact inside the FMA, so one step is off only by n times the error of ln 2:
  // 2e-9 per power of two.
  if constexpr (std::is_same_v<T, float>) return hn::NegMulAdd(n, hn::Set(d, C::kLn2), x);
#endif
  return hn::NegMulAdd(n, hn::Set(d, C::kLn2Lo), hn::NegMulAdd(n, hn::Set(d, C::kLn2Hi), x));
}

// x[i] = exp(x[i]) for kCount vectors in step: one alone is a chain of a dozen dependent
// operations, four together keep the FMA units busy.
template <class T, size_t kCount>
HWY_INLINE void Exp(Vec<T> (&x)[kCount]) {
  using C = ExpConstants<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr size_t kDegree = sizeof(C::kPoly) / sizeof(T) - 1;
  Vec<T> biased[kCount], f[kCount], p[kCount];
  // n = round(x / ln 2); the low bits of the biased sum hold n + bias as an integer too.
  Unroll<kCount>([&](auto i) HWY_ATTR {
    biased[i] = hn::MulAdd(x[i], hn::Set(d, T(1.4426950408889634)), hn::Set(d, C::kMagic));
  });
  Unroll<kCount>([&](auto i) HWY_ATTR {
    const Vec<T> n = hn::Sub(biased[i], hn::Set(d, C::kMagic));
    f[i] = Reduce<T>(x[i], n);
    p[i] = hn::Set(d, C::kPoly[kDegree]);
  });
  Unroll<kDegree>([&](auto power) HWY_ATTR {
    Unroll<kCount>([&](auto i) HWY_ATTR {
      p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, C::kPoly[kDegree - 1 - power]));
    });
  });
  Unroll<kCount>([&](auto i) HWY_ATTR {
    // p·2^n as a product, not by adding to p's exponent bits: that could turn a NaN into a number.
    const Vec<T> y =
        hn::Mul(p[i], hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(di, biased[i]))));
    // Selecting at the end, not clamping at the start: a clamp could do the same. By the magic sum,
    // not by x: one register less to keep through the polynomial, and nothing is spilled.
    x[i] = hn::IfThenZeroElse(hn::Lt(biased[i], hn::Set(d, C::kSmallest)), y);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_EXP_INL_H_
