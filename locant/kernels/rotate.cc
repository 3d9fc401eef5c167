#include "locant/kernels/rotate.h"

#include <algorithm>
#include <cstdlib>

#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/rotate.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One pair whose halves stand `apart` elements from each other, rounded as in vectors: whether a
// row is contiguous must not change its bits.
template <class Real>
void RotatePair(const Real* from, int64_t from_apart, Real* to, int64_t to_apart, Real c, Real s) {
  const hn::CappedTag<Real, 1> d;
  const auto a = hn::Set(d, from[0]), b = hn::Set(d, from[from_apart]);
  to[0] = hn::GetLane(hn::NegMulAdd(b, hn::Set(d, s), hn::Mul(a, hn::Set(d, c))));
  to[to_apart] = hn::GetLane(hn::MulAdd(a, hn::Set(d, s), hn::Mul(b, hn::Set(d, c))));
}

// Pairs (t, t + pairs) of one contiguous row.
template <class Real>
void RotateHalves(const Real* from, Real* to, int64_t pairs, const Real* cosine, const Real* sine) {
  const hn::ScalableTag<Real> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t t = 0;
  for (; t + lanes <= pairs; t += lanes) {
    const auto a = hn::LoadU(d, from + t), b = hn::LoadU(d, from + pairs + t);
    const auto c = hn::LoadU(d, cosine + t), s = hn::LoadU(d, sine + t);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, to + t);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, to + pairs + t);
  }
  for (; t < pairs; ++t) RotatePair(from + t, pairs, to + t, pairs, cosine[t], sine[t]);
}

// Pairs (2t, 2t + 1) of one contiguous row.
template <class Real>
void RotateNeighbours(const Real* from, Real* to, int64_t pairs, const Real* cosine,
                      const Real* sine) {
  const hn::ScalableTag<Real> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t t = 0;
  for (; t + lanes <= pairs; t += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, from + 2 * t, a, b);
    const auto c = hn::LoadU(d, cosine + t), s = hn::LoadU(d, sine + t);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                          to + 2 * t);
  }
  for (; t < pairs; ++t) RotatePair(from + 2 * t, 1, to + 2 * t, 1, cosine[t], sine[t]);
}

template <class Real>
void RotateRow(const RotateBlock<Real>& x, int64_t head, int64_t row) {
  const Real* from = x.from + head * x.from_strides.head + row * x.from_strides.row;
  Real* to = x.to + head * x.to_strides.head + row * x.to_strides.row;
  const Real *cosine = x.cosine + row * x.pairs, *sine = x.sine + row * x.pairs;
  const int64_t from_column = x.from_strides.column, to_column = x.to_strides.column;
  if (from_column == 1 && to_column == 1) {
    if (x.interleaved)
      RotateNeighbours(from, to, x.pairs, cosine, sine);
    else
      RotateHalves(from, to, x.pairs, cosine, sine);
  } else {
    const int64_t step = x.interleaved ? 2 : 1, apart = x.interleaved ? 1 : x.pairs;
    for (int64_t t = 0; t < x.pairs; ++t)
      RotatePair(from + t * step * from_column, apart * from_column, to + t * step * to_column,
                 apart * to_column, cosine[t], sine[t]);
  }
  if (from == to) return;
  for (int64_t c = 2 * x.pairs; c < x.dim; ++c) to[c * to_column] = from[c * from_column];
}

template <class Real>
void Rotate(const RotateBlock<Real>& x) {
  // In the order of memory: (B, L, H, d) goes through all heads of a row first.
  if (std::abs(x.from_strides.head) < std::abs(x.from_strides.row)) {
    for (int64_t row = 0; row < x.rows; ++row)
      for (int64_t head = 0; head < x.heads; ++head) RotateRow(x, head, row);
  } else {
    for (int64_t head = 0; head < x.heads; ++head)
      for (int64_t row = 0; row < x.rows; ++row) RotateRow(x, head, row);
  }
}

void RotateF32(const RotateBlock<float>& block) {
  Rotate(block);
}
void RotateF64(const RotateBlock<double>& block) {
  Rotate(block);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RotateF32);
HWY_EXPORT(RotateF64);

void rotate_block(const RotateBlock<float>& block) {
  LOCANT_DISPATCH(RotateF32)(block);
}
void rotate_block(const RotateBlock<double>& block) {
  LOCANT_DISPATCH(RotateF64)(block);
}

}  // namespace locant::inline v0
#endif
