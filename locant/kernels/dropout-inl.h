// Attention dropout on a row of probabilities.

#if defined(LOCANT_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_DROPOUT_INL_H_
#undef LOCANT_KERNELS_DROPOUT_INL_H_
#else
#define LOCANT_KERNELS_DROPOUT_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/terms/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// One round of the finaliser in terms/dropout.h.
template <class D, class V>
HWY_INLINE V DropoutRound(D d, V x) {
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7feb352du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846ca68bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// p[j] = 0 for the dropped ones of the `count` keys from first_key on; count is a multiple of the
// panel width. Returns the sum of what is left.
template <class T>
HWY_INLINE T DropRow(const DropoutRow& row, int32_t threshold, uint32_t first_key, size_t count,
                     T* p) {
  const hn::ScalableTag<T> d;
  Vec<T> sum = hn::Zero(d);
  if constexpr (std::is_same_v<T, float>) {
    const hn::ScalableTag<uint32_t> du;
    const hn::ScalableTag<int32_t> di;
    for (size_t j = 0; j < count; j += kLanes<T>) {
      auto x = hn::Xor(hn::Iota(du, first_key + static_cast<uint32_t>(j)), hn::Set(du, row.a));
      x = hn::Xor(DropoutRound(du, x), hn::Set(du, row.b));
      x = DropoutRound(du, x);
      const auto hash = hn::BitCast(di, hn::ShiftRight<1>(x));
      const auto drop = hn::RebindMask(d, hn::Lt(hash, hn::Set(di, threshold)));
      const Vec<T> kept = hn::IfThenZeroElse(drop, hn::LoadU(d, p + j));
      hn::StoreU(kept, d, p + j);
      sum = hn::Add(sum, kept);
    }
  } else {
    for (size_t j = 0; j < count; ++j)
      if (is_dropped(row, first_key + static_cast<uint32_t>(j), threshold)) p[j] = 0;
    for (size_t j = 0; j < count; j += kLanes<T>) sum = hn::Add(sum, hn::LoadU(d, p + j));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_DROPOUT_INL_H_
