// Stored types: vectors of T read from, and written to, elements of T or of a 16-bit type.
//
// The bits are moved with integer operations, because Highway 1.0.3's own conversions cut instead
// of rounding on some instruction sets and lose infinities and NaN.

#if defined(LOCANT_KERNELS_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_STORED_INL_H_
#undef LOCANT_KERNELS_STORED_INL_H_
#else
#define LOCANT_KERNELS_STORED_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/core/half.h"
#include "locant/core/view.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether LoadAs can read S as vectors of T.
template <class S, class T>
constexpr bool kLoadable = std::is_same_v<S, T> ||
                           (std::is_same_v<T, float> &&
                            (std::is_same_v<S, Half> || std::is_same_v<S, Bfloat>));

// Calls f(S{}) with the stored type.
template <class F>
HWY_INLINE void WithStored(DType dtype, F&& f) {
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::bf16) return f(Bfloat{});
  if (dtype == DType::f16) return f(Half{});
  return f(float{});
}

template <class T>
constexpr bool IsLoadable(DType dtype) {
  return dtype == dtype_of<T>() || (std::is_same_v<T, float> && is_half(dtype));
}

// The same for types that are loadable as T.
template <class T, class F>
HWY_INLINE void WithLoadable(DType dtype, F&& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::bf16) return f(Bfloat{});
    if (dtype == DType::f16) return f(Half{});
  }
  return f(T{});
}

// d's lanes from as many elements at p, and not a byte more.
template <class D, class S>
HWY_INLINE hn::Vec<D> LoadAs(D d, const S* p) {
  if constexpr (std::is_same_v<S, hn::TFromD<D>>) {
    return hn::LoadU(d, p);
  } else {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> du16;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86 && !defined(HWY_DISABLE_F16C)
    if constexpr (std::is_same_v<S, Half>) {  // one instruction, right for all values
      const hn::Rebind<hwy::float16_t, D> df16;
      return hn::PromoteTo(d, hn::LoadU(df16, reinterpret_cast<const hwy::float16_t*>(p)));
    }
#endif
    const auto bits = hn::PromoteTo(du, hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p)));
    if constexpr (std::is_same_v<S, Bfloat>) {
      return hn::BitCast(d, hn::ShiftLeft<16>(bits));
    } else {
      // As Half's conversion, with selections for branches.
      const auto all_exponents = hn::Set(du, 0x7c00u << 13);
      const auto smallest = hn::Set(du, (127u - 14) << 23);  // 2^-14
      const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
      const auto exponent = hn::And(shifted, all_exponents);
      const auto normal = hn::Add(shifted, hn::Set(du, (127u - 15) << 23));
      const auto special = hn::Or(shifted, hn::Set(du, 0x7f800000u));
      const auto subnormal = hn::BitCast(
          du, hn::Sub(hn::BitCast(d, hn::Or(shifted, smallest)), hn::BitCast(d, smallest)));
      auto magnitude = hn::IfThenElse(hn::Eq(exponent, all_exponents), special, normal);
      magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), subnormal, magnitude);
      const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
      return hn::BitCast(d, hn::Or(magnitude, sign));
    }
  }
}

// The bits of a float32 rounded to nearest even in S, in the lower half of each lane.
template <class S, class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> RoundedBits(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto u = hn::BitCast(du, v);
  const auto one = hn::Set(du, 1u);
  if constexpr (std::is_same_v<S, Bfloat>) {
    const auto top = hn::ShiftRight<16>(u);
    const auto rounded =
        hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(du, 0x7fffu)), hn::And(top, one)));
    const auto nan = hn::Or(top, hn::Set(du, 0x40u));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
  } else {
    const auto sign = hn::And(u, hn::Set(du, 0x80000000u));
    const auto a = hn::Xor(u, sign);
    const auto odd = hn::And(hn::ShiftRight<13>(a), one);
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Sub(a, hn::Set(du, ((127u - 15) << 23) - 0xfffu)), odd));
    const auto half = hn::Set(d, 0.5f);
    const auto subnormal =
        hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, a), half)), hn::BitCast(du, half));
    const auto absolute = hn::BitCast(d, a);
    auto magnitude = hn::IfThenElse(hn::RebindMask(du, hn::Lt(absolute, hn::Set(d, 0x1p-14f))),
                                    subnormal, normal);
    magnitude = hn::IfThenElse(hn::RebindMask(du, hn::Ge(absolute, hn::Set(d, 65536.0f))),
                               hn::Set(du, 0x7c00u), magnitude);
    magnitude = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7e00u), magnitude);
    return hn::Or(magnitude, hn::ShiftRight<16>(sign));
  }
}

// Writes d's lanes as as many elements of S at p.
template <class D, class S>
HWY_INLINE void StoreAs(hn::Vec<D> v, D d, S* p) {
  if constexpr (std::is_same_v<S, hn::TFromD<D>>) {
    hn::StoreU(v, d, p);
  } else {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint16_t, D> du16;
    const auto bits = hn::DemoteTo(du16, hn::BitCast(di, RoundedBits<S>(d, v)));
    hn::StoreU(bits, du16, reinterpret_cast<uint16_t*>(p));
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_STORED_INL_H_
