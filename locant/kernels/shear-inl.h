// Shear and unshear: between products over table rows and scores over offsets.
//
//   shear    S[i,j] += m·G[i, row(d)]   (query side)     S[i,j] += m·G[row(d), j]   (key side)
//   unshear  W[i, row] = sum of P[i,j] over the j with row(d) = row
//
// A strip holds row(d) - lo for consecutive offsets; along a row of S it is read upwards from
// strip[e]. It never decreases. Where it is constant, or rises by one per offset, or by at most
// one, there is something faster than a gather.

#if defined(LOCANT_KERNELS_SHEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_SHEAR_INL_H_
#undef LOCANT_KERNELS_SHEAR_INL_H_
#else
#define LOCANT_KERNELS_SHEAR_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant {
namespace HWY_NAMESPACE {

template <class T>
using Index = hwy::MakeSigned<T>;  // as wide as T, so that a vector of rows matches one of scores

enum class Slope { constant, linear, unit, any };

// How a strip behaves on [first, last].
template <class T>
HWY_INLINE Slope SlopeOf(const Index<T>* strip, size_t first, size_t last, bool unit_steps) {
  const Index<T> rise = strip[last] - strip[first];
  if (rise == 0) return Slope::constant;
  if (!unit_steps) return Slope::any;
  return rise == static_cast<Index<T>>(last - first) ? Slope::linear : Slope::unit;
}

// G[0, strip[0 .. N)] for one row g of G.
template <Slope kSlope, class T>
HWY_INLINE Vec<T> ReadQuerySide(const T* g, const Index<T>* strip) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<Index<T>> di;
  if constexpr (kSlope == Slope::constant) {
    return hn::Set(d, g[strip[0]]);
  } else if constexpr (kSlope == Slope::linear) {
    return hn::LoadU(d, g + strip[0]);
  } else if constexpr (kSlope == Slope::unit) {
    // N offsets touch at most N neighbouring rows: one load, one permutation.
    const auto rows = hn::Sub(hn::LoadU(di, strip), hn::Set(di, strip[0]));
    return hn::TableLookupLanes(hn::LoadU(d, g + strip[0]), hn::IndicesFromVec(d, rows));
  } else {
    return hn::GatherIndex(d, g, hn::LoadU(di, strip));
  }
}

// Lane l of the result is lane l of the vector at p + l·kPanel, for the kCount vectors from p:
// halves are combined by blends, log2(N) deep.
template <size_t kCount, class T>
HWY_INLINE Vec<T> Diagonal(const T* p) {
  const hn::ScalableTag<T> d;
  if constexpr (kCount == 1) {
    return hn::Load(d, p);
  } else {
    constexpr size_t kHalf = kCount / 2;
    const Vec<T> lower = Diagonal<kHalf>(p);
    const Vec<T> upper = Diagonal<kHalf>(p + kHalf * kPanel<T>);
    const hn::ScalableTag<Index<T>> di;
    const auto bit = hn::Set(di, static_cast<Index<T>>(kHalf));
    const auto take = hn::TestBit(hn::Iota(di, 0), bit);
    return hn::IfThenElse(hn::RebindMask(d, take), upper, lower);
  }
}

// G[strip[l], l] for the N lanes l at g; rows of G are kPanel apart. Unit slope: no lane is more
// than `rise` rows above the first. (A bound for the whole panel rather than the exact rise of
// these lanes: blends that change nothing are cheaper than a loop whose length the CPU cannot
// predict.)
template <Slope kSlope, class T>
HWY_INLINE Vec<T> ReadKeySide(const T* g, const Index<T>* strip, Index<T> rise) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<Index<T>> di;
  constexpr size_t kP = kPanel<T>;
  const T* p = g + static_cast<size_t>(strip[0]) * kP;
  if constexpr (kSlope == Slope::constant) {
    return hn::Load(d, p);
  } else if constexpr (kSlope == Slope::linear) {
    return Diagonal<kLanes<T>>(p);
  } else if constexpr (kSlope == Slope::unit) {
    // Neighbouring rows, blended in at the lanes that have climbed that far.
    const auto climbed = hn::Sub(hn::LoadU(di, strip), hn::Set(di, strip[0]));
    Vec<T> out = hn::Load(d, p);
    for (Index<T> step = 0; step < rise; ++step) {
      p += kP;
      const auto reached = hn::Gt(climbed, hn::Set(di, step));
      out = hn::IfThenElse(hn::RebindMask(d, reached), hn::Load(d, p), out);
    }
    return out;
  } else {
    const auto rows = hn::ShiftLeft<hwy::CeilLog2(kP)>(hn::LoadU(di, strip));
    return hn::GatherIndex(d, g, hn::Add(rows, hn::Iota(di, 0)));
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SHEAR_INL_H_
