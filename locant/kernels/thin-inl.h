// Few queries (decode): keys and values are read once, in place, as fast as memory gives them.
// Packing would read and write each of them again for a handful of products.

#if defined(LOCANT_KERNELS_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_THIN_INL_H_
#undef LOCANT_KERNELS_THIN_INL_H_
#else
#define LOCANT_KERNELS_THIN_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// How far ahead rows are asked for. Hardware prefetchers stop at page ends and start anew for every
// stream; memory is the limit here, so it is worth asking.
constexpr size_t kBytesAhead = 2048;

template <class S>
HWY_INLINE void PrefetchAhead(const S* row, size_t width) {
  PrefetchRows(row + kBytesAhead / sizeof(S), 0, 1, width);
}

// s[j] = start[j] + scale·<q, k_j> for `keys` keys.
template <class T, class S>
HWY_INLINE void ThinScores(const T* q, size_t depth, T scale, const S* k, ptrdiff_t k_stride,
                           size_t keys, const T* start, T* s) {
  for (size_t j = 0; j < keys; ++j, k += k_stride) {
    PrefetchAhead(k, depth);
    s[j] = start[j] + scale * Dot(q, k, depth);
  }
}

// o += sum of p[j]·v_j over the keys that are live.
template <class T, class S>
HWY_INLINE void ThinValues(const T* p, const uint8_t* live, const S* v, ptrdiff_t v_stride,
                           size_t keys, size_t value_dim, T* o) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  for (size_t j = 0; j < keys; ++j, v += v_stride) {
    if (!live[j]) continue;
    PrefetchAhead(v, value_dim);
    const Vec<T> weight = hn::Set(d, p[j]);
    size_t c = 0;
    for (; c + kN <= value_dim; c += kN)
      hn::StoreU(hn::MulAdd(weight, LoadAs(d, v + c), hn::LoadU(d, o + c)), d, o + c);
    for (; c < value_dim; ++c) o[c] += p[j] * static_cast<T>(v[c]);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_THIN_INL_H_
