#include "locant/kernels/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "locant/core/executor.h"
#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/activation-inl.h"

#ifndef LOCANT_KERNELS_ROWS_CALL_
#define LOCANT_KERNELS_ROWS_CALL_
namespace locant::inline v0 {

// One row of layer_norm, or of rms_norm: then beta is null. residual may be null.
struct NormRow {
  const float *x, *residual, *gamma, *beta;
  float* y;
  size_t width;
  float eps;
};

}  // namespace locant::inline v0
#endif

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
void Normalize(const NormRow& row) {
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

void ActivateRow(Activation activation, float* x, size_t width) {
  const hn::ScalableTag<float> d;
  size_t c = 0;
  for (; c + kLanes<float> <= width; c += kLanes<float>)
    hn::StoreU(Activate(activation, hn::LoadU(d, x + c)), d, x + c);
  if (c == width) return;
  HWY_ALIGN float rest[kLanes<float>] = {};
  std::copy(x + c, x + width, rest);
  hn::Store(Activate(activation, hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (width - c), x + c);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(Normalize);
HWY_EXPORT(ActivateRow);

namespace {

constexpr const char* kScope = "norm";
constexpr int64_t kRowsPerItem = 32;

// Runs body(row) for all rows, some of them per item.
template <class Body>
void over_rows(int64_t rows, const Body& body) {
  executor()->parallel_for((rows + kRowsPerItem - 1) / kRowsPerItem, [&](int64_t item, int) {
    const int64_t end = std::min(rows, (item + 1) * kRowsPerItem);
    for (int64_t row = item * kRowsPerItem; row < end; ++row) body(row);
  });
}

void check_rows(const char* name, const ConstView& x) {
  require(x.rank == 2 && x.dtype == DType::f32 && (x.strides[1] == 1 || x.shape[1] <= 1), kScope,
          name, " must be f32 (M, N) with rows of contiguous elements, got ", shape_text(x));
}

void check_weight(const char* name, const ConstView& weight, int64_t width) {
  require(weight.rank == 1 && weight.shape[0] == width && weight.dtype == DType::f32 &&
              (weight.strides[0] == 1 || weight.shape[0] <= 1),
          kScope, name, " must be f32 (", width, "), got ", shape_text(weight));
}

// An empty beta makes it an rms_norm.
void normalize(const ConstView& x, const ConstView& residual, const ConstView& gamma,
               const ConstView& beta, float eps, const View& y) {
  check_rows("x", x);
  check_rows("y", y);
  if (residual) check_rows("residual", residual);
  require(y.shape == x.shape && (!residual || residual.shape == x.shape), kScope,
          "x, residual and y must have one shape, got ", shape_text(x), ", ", shape_text(residual),
          " and ", shape_text(y));
  check_weight("gamma", gamma, x.shape[1]);
  const auto run = LOCANT_DISPATCH(Normalize);
  over_rows(x.shape[0], [&](int64_t row) {
    run({.x = x.at<float>(row),
         .residual = residual ? residual.at<float>(row) : nullptr,
         .gamma = gamma.at<float>(),
         .beta = beta ? beta.at<float>() : nullptr,
         .y = y.at<float>(row),
         .width = static_cast<size_t>(x.shape[1]),
         .eps = eps});
  });
}

}  // namespace

void layer_norm(const ConstView& x, const ConstView& residual, const ConstView& gamma,
                const ConstView& beta, float eps, const View& y) {
  check_weight("beta", beta, x.shape[1]);
  normalize(x, residual, gamma, beta, eps, y);
}

void layer_norm(const ConstView& x, const ConstView& gamma, const ConstView& beta, float eps,
                const View& y) {
  layer_norm(x, {}, gamma, beta, eps, y);
}

void rms_norm(const ConstView& x, const ConstView& gamma, float eps, const View& y) {
  normalize(x, {}, gamma, {}, eps, y);
}

void activate(Activation activation, const View& x) {
  check_rows("x", x);
  const auto run = LOCANT_DISPATCH(ActivateRow);
  over_rows(x.shape[0], [&](int64_t row) {
    run(activation, x.at<float>(row), static_cast<size_t>(x.shape[1]));
  });
}

}  // namespace locant::inline v0
#endif
