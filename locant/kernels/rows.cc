#include "locant/kernels/rows.h"

#include <algorithm>
#include <cstdint>

#include "locant/core/executor.h"
#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/activation-inl.h"
#include "locant/kernels/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

void RunNormalize(const NormRow& row) {
  Normalize(row);
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

HWY_EXPORT(RunNormalize);
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
  require(x.data != nullptr || x.size() == 0, kScope, name, " must not be null");
}

void check_weight(const char* name, const ConstView& weight, int64_t width) {
  require(weight.rank == 1 && weight.shape[0] == width && weight.dtype == DType::f32 &&
              (weight.strides[0] == 1 || weight.shape[0] <= 1),
          kScope, name, " must be f32 (", width, "), got ", shape_text(weight));
  require(weight.data != nullptr || width == 0, kScope, name, " must not be null");
}

void normalize(const ConstView& x, const ConstView& residual, const NormWeights& weights,
               const View& y, size_t isa) {
  check_rows("x", x);
  check_rows("y", y);
  if (residual) check_rows("residual", residual);
  require(y.shape == x.shape && (!residual || residual.shape == x.shape), kScope,
          "x, residual and y must have one shape, got ", shape_text(x), ", ", shape_text(residual),
          " and ", shape_text(y));
  check_norm(weights, x.shape[1]);
  const auto run = LOCANT_DISPATCH_TO(RunNormalize, isa);
  over_rows(x.shape[0], [&](int64_t row) {
    run(norm_row(x.at<float>(row), residual ? residual.at<float>(row) : nullptr, weights,
                 y.at<float>(row), x.shape[1]));
  });
}

}  // namespace

void check_norm(const NormWeights& weights, int64_t width) {
  check_weight("gamma", weights.gamma, width);
  if (weights.beta) check_weight("beta", weights.beta, width);
}

void check_layer_norm(const NormWeights& weights, int64_t width) {
  check_weight("gamma", weights.gamma, width);
  check_weight("beta", weights.beta, width);
}

void normalize(const ConstView& x, const NormWeights& weights, const View& y, size_t isa) {
  normalize(x, {}, weights, y, isa);
}

void layer_norm(const ConstView& x, const ConstView& residual, const ConstView& gamma,
                const ConstView& beta, float eps, const View& y) {
  check_layer_norm({gamma, beta, eps}, x.shape[1]);
  normalize(x, residual, {gamma, beta, eps}, y, isa_index());
}

void layer_norm(const ConstView& x, const ConstView& gamma, const ConstView& beta, float eps,
                const View& y) {
  layer_norm(x, {}, gamma, beta, eps, y);
}

void rms_norm(const ConstView& x, const ConstView& gamma, float eps, const View& y) {
  normalize(x, {}, {gamma, {}, eps}, y, isa_index());
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
