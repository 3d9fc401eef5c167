// Normalises a row.

#if defined(LOCANT_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_NORM_INL_H_
#undef LOCANT_KERNELS_NORM_INL_H_
#else
#define LOCANT_KERNELS_NORM_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Calls f(offset, tag) with whole vectors and then, for what is left, with single elements.
template <class F>
HWY_INLINE void OverRow(size_t width, F&& f) {
  const hn::ScalableTag<float> d;
  size_t c = 0;
  for (; c + kLanes<float> <= width; c += kLanes<float>) f(c, d);
  for (; c < width; ++c) f(c, hn::CappedTag<float, 1>());
}

// Two passes: the variance is a sum of squares of small numbers, not a difference of large ones.
inline void Normalize(const NormRow& row) {
  const auto load = [&](size_t c, auto d) HWY_ATTR {
    const auto x = hn::LoadU(d, row.x + c);
    return row.residual == nullptr ? x : hn::Add(x, hn::LoadU(d, row.residual + c));
  };
  const float count = static_cast<float>(row.width);
  const auto total = [&](auto&& value) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const size_t whole = row.width / kLanes<float> * kLanes<float>;
    Vec<float> sums = hn::Zero(d);
    float rest = 0;
    OverRow(row.width, [&](size_t c, auto tag) HWY_ATTR {
      if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<float>>)
        if (c < whole) {
          sums = hn::Add(sums, value(c, tag));
          return;
        }
      rest += hn::GetLane(value(c, tag));
    });
    return hn::GetLane(hn::SumOfLanes(d, sums)) + rest;
  };
  const float mean = row.beta == nullptr ? 0.0f : total(load) / count;
  const float variance = total([&](size_t c, auto d) HWY_ATTR {
                           const auto centred = hn::Sub(load(c, d), hn::Set(d, mean));
                           return hn::Mul(centred, centred);
                         }) /
                         count;
  const float scale = 1.0f / std::sqrt(variance + row.eps);
  OverRow(row.width, [&](size_t c, auto d) HWY_ATTR {
    const auto unit = hn::Mul(hn::Sub(load(c, d), hn::Set(d, mean)), hn::Set(d, scale));
    const auto shift = row.beta == nullptr ? hn::Zero(d) : hn::LoadU(d, row.beta + c);
    hn::StoreU(hn::MulAdd(unit, hn::LoadU(d, row.gamma + c), shift), d, row.y + c);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_NORM_INL_H_
