// Few queries (decode): keys and values are read once, in place, as fast as memory gives them.
// Packing would read and write each of them again for a handful of products.

#if defined(LOCANT_KERNELS_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_THIN_INL_H_
#undef LOCANT_KERNELS_THIN_INL_H_
#else
#define LOCANT_KERNELS_THIN_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Calls f(0 .. count - 1), rows of a quarter each in turn: hardware prefetchers follow four streams
// faster than one, and faster than with anything asked for.
template <class F>
HWY_INLINE void ForEachOfStreams(size_t count, F&& f) {
  constexpr size_t kStreams = 4;
  const size_t part = (count + kStreams - 1) / kStreams;
  for (size_t n = 0; n < part; ++n)
    for (size_t at = n; at < count; at += part) f(at);
}

// o += sum of p[j]·v_j over the keys that are live.
template <class T, class S>
HWY_INLINE void ThinValues(const T* p, const uint8_t* live, const S* v, ptrdiff_t v_stride,
                           size_t keys, size_t value_dim, T* o) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  ForEachOfStreams(keys, [&](size_t j) HWY_ATTR {
    if (!live[j]) return;
    const S* row = v + static_cast<ptrdiff_t>(j) * v_stride;
    const Vec<T> weight = hn::Set(d, p[j]);
    size_t c = 0;
    for (; c + kN <= value_dim; c += kN)
      hn::StoreU(hn::MulAdd(weight, LoadAs(d, row + c), hn::LoadU(d, o + c)), d, o + c);
    for (; c < value_dim; ++c) o[c] += p[j] * static_cast<T>(row[c]);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_THIN_INL_H_
