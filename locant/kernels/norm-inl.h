// Normalises a row.

#if defined(LOCANT_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_NORM_INL_H_
#undef LOCANT_KERNELS_NORM_INL_H_
#else
#define LOCANT_KERNELS_NORM_INL_H_
#endif

#include <cmath>
#include <cstddef>

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

// The sum of value(offset, tag) over a row. Four sums side by side: one alone would wait for each
// addition.
template <class F>
HWY_INLINE float SumOver(size_t width, F&& value) {
  const hn::ScalableTag<float> d;
  constexpr size_t kN = kLanes<float>;
  Vec<float> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t c = 0;
  for (; c + 4 * kN <= width; c += 4 * kN)
    Unroll<4>([&](auto i) HWY_ATTR { sums[i] = hn::Add(sums[i], value(c + i * kN, d)); });
  for (; c + kN <= width; c += kN) sums[0] = hn::Add(sums[0], value(c, d));
  float rest = 0;
  for (; c < width; ++c) rest += hn::GetLane(value(c, hn::CappedTag<float, 1>()));
  const Vec<float> all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, all)) + rest;
}

// Two passes: the variance is a sum of squares of small numbers, not a difference of large ones.
inline void Normalize(const NormRow& row) {
  const auto load = [&](size_t c, auto d) HWY_ATTR {
    const auto x = hn::LoadU(d, row.x + c);
    return row.residual == nullptr ? x : hn::Add(x, hn::LoadU(d, row.residual + c));
  };
  const float count = static_cast<float>(row.width);
  const float mean = row.beta == nullptr ? 0.0f : SumOver(row.width, load) / count;
  const float variance = SumOver(row.width, [&](size_t c, auto d) HWY_ATTR {
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
