#include "locant/kernels/linear.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "locant/core/executor.h"
#include "locant/core/overlap.h"
#include "locant/kernels/isa_dispatch.h"
#include "locant/kernels/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/linear.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

void RunLinear(const ConstView& x, const PackedMatrix& w, const LinearOptions& options,
               const View& y, const MatmulTile& tile) {
  LinearKernel(x, w, options, y, tile).run();
}

void RunPackPanel(const PackedMatrix& w, int64_t panel, const std::vector<WeightRow>& rows) {
  PackPanel(w, panel, rows);
}

LinearShape ShapeFor(int64_t depth) {
  return LinearKernel::shape_for(depth);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RunLinear);
HWY_EXPORT(RunPackPanel);
HWY_EXPORT(ShapeFor);

namespace {

constexpr const char* kScope = "linear";

// A tile's rows of x and y stay in the second-level cache: 144 rows of a block of the depth, 256 or
// up to 1024 floats, and of 384 results. With a factor there are twice as many results.
constexpr int64_t kTileRows = 144;
constexpr int64_t kTileCols = 384;
constexpr int64_t kItemsPerThread = 4;  // so that threads end together
// So many rows repay reading all of W for them, so that a tile has whole rows and can normalise them.
constexpr int64_t kWholeRows = 64;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Sizes of the rectangles that y (rows, panels of `panel` columns) is cut into. The bits of the
// result do not depend on them.
struct Cut {
  int64_t rows = 1, panels = 1;  // of one item
};

Cut cut(int64_t rows, const PackedMatrix& w, const LinearOptions& options) {
  const int64_t items = kItemsPerThread * executor()->concurrency();
  const bool whole_rows = options.norm && rows >= items * kWholeRows;
  // Rows in equal parts of whole groups of the micro-kernel.
  int64_t down = ceil_div(rows, kTileRows);
  if (whole_rows) down = ceil_div(down, items) * items;
  Cut out;
  out.rows = ceil_div(ceil_div(rows, down), w.shape().rows) * w.shape().rows;
  if (whole_rows) {
    out.panels = w.panels();
    return out;
  }
  const int64_t cols = options.factor == nullptr ? kTileCols : kTileCols / 2;
  const int64_t across =
      std::max(ceil_div(w.panels() * w.shape().panel, cols), ceil_div(items, down));
  const int64_t together = panels_side_by_side(rows);
  out.panels = std::max<int64_t>(1, ceil_div(ceil_div(w.panels(), across), together)) * together;
  return out;
}

void check(const ConstView& x, const PackedMatrix& w, const LinearOptions& options, const View& y) {
  require(x.rank == 2 && y.rank == 2 && x.shape[1] == w.depth() && y.shape[1] == w.rows() &&
              x.shape[0] == y.shape[0],
          kScope, "shapes must be (M, K), (N, K) and (M, N), got ", shape_text(x), ", (", w.rows(),
          ", ", w.depth(), ") and ", shape_text(y));
  const ConstView& residual = options.residual;
  const PackedMatrix* factor = options.factor;
  require(x.data != nullptr || x.size() == 0, kScope, "x must not be null");
  require(y.data != nullptr || y.size() == 0, kScope, "y must not be null");
  require(residual.data != nullptr || residual.rank == 0 || residual.size() == 0, kScope,
          "residual must not be null");
  require(factor == nullptr || (factor->rows() == w.rows() && factor->depth() == w.depth()), kScope,
          "factor is (", factor == nullptr ? 0 : factor->rows(), ", ",
          factor == nullptr ? 0 : factor->depth(), ") but W is (", w.rows(), ", ", w.depth(), ")");
  require(factor == nullptr || factor->isa() == w.isa(), kScope,
          "factor was packed for another instruction set than W");
  require(!residual || (residual.rank == 2 && residual.shape == y.shape), kScope, "residual is ",
          shape_text(residual), " but y is ", shape_text(y));
  for (const ConstView& view : {x, ConstView(y), residual})
    require(!view || (view.dtype == DType::f32 && (view.strides[1] == 1 || view.shape[1] <= 1)),
            kScope, "x, y and residual must be f32 with rows of contiguous elements");
  require(y.shape[0] <= 1 || std::abs(y.strides[0]) >= y.shape[1], kScope, "y has rows of ",
          y.shape[1], " elements, ", y.strides[0], " elements apart: they overlap");
  if (options.norm) check_norm(options.norm, w.rows());
  require(!may_overlap(y, x) && !may_overlap(y, residual), kScope,
          "y overlaps x or residual in memory");
}

}  // namespace

size_t PackedMatrix::bytes() const {
  return static_cast<size_t>(panels() * shape_.panel * (depth_ + 1)) * sizeof(float);
}

PackedMatrix::PackedMatrix(std::span<const ConstView> weights, std::span<const ConstView> biases)
    : isa_(isa_index()) {
  require(!weights.empty() && (biases.empty() || biases.size() == weights.size()), kScope, "got ",
          weights.size(), " pieces of weights and ", biases.size(), " of biases");
  depth_ = weights[0].shape[1];
  std::vector<WeightRow> rows;
  for (size_t piece = 0; piece < weights.size(); ++piece) {
    const ConstView& w = weights[piece];
    require(w.rank == 2 && w.shape[1] == depth_ && is_floating(w.dtype), kScope,
            "pieces of weights must be (n, ", depth_, ") of a floating type, got ", shape_text(w));
    require(w.data != nullptr || w.size() == 0, kScope, "weights must not be null");
    for (int64_t n = 0; n < w.shape[0]; ++n)
      rows.push_back({w.row(n, 0, 0), w.dtype, w.strides[0], w.strides[1], piece});
  }
  rows_ = static_cast<int64_t>(rows.size());
  require(rows_ >= 1 && depth_ >= 1, kScope, "weights must not be empty, got (", rows_, ", ",
          depth_, ")");
  shape_ = LOCANT_DISPATCH_TO(ShapeFor, isa_)(depth_);
  bias_.assign(static_cast<size_t>(panels() * shape_.panel), 0.0f);
  int64_t at = 0;
  for (size_t piece = 0; piece < biases.size(); ++piece) {
    const ConstView& b = biases[piece];
    const int64_t count = weights[piece].shape[0];
    require(b.data != nullptr || b.rank == 0 || b.size() == 0, kScope, "a bias must not be null");
    require(!b || (b.rank == 1 && b.shape[0] == count), kScope, "a bias is ", shape_text(b),
            " but its weights have ", count, " rows");
    for (int64_t n = 0; b && n < count; ++n) bias_[at + n] = static_cast<float>(element(b, n));
    at += count;
  }
  data_ = Block(static_cast<size_t>(panels() * shape_.panel * depth_) * sizeof(float));
  const auto pack = LOCANT_DISPATCH_TO(RunPackPanel, isa_);
  executor()->parallel_for(panels(), [&](int64_t p, int) { pack(*this, p, rows); });
}

void linear(const ConstView& x, const PackedMatrix& w, const LinearOptions& options,
            const View& y) {
  check(x, w, options, y);
  const int64_t rows = y.shape[0];
  if (rows == 0) return;
  const Cut size = cut(rows, w, options);
  const int64_t across = ceil_div(w.panels(), size.panels), down = ceil_div(rows, size.rows);
  const auto run = LOCANT_DISPATCH_TO(RunLinear, w.isa());
  // Workers get ranges of the indices: parts of the rows, if there are enough, so that a worker finds
  // in its cache what it made of them a layer before. In a part, tiles that read the same part of W
  // follow each other: it may still be in the second-level cache.
  const int64_t threads = executor()->concurrency(), parts = down % threads == 0 ? threads : 1;
  const int64_t part = down / parts;
  executor()->parallel_for(across * down, [&](int64_t index, int) {
    const int64_t row = index / (part * across) * part + index % part;
    const int64_t col = index / part % across;
    MatmulTile tile;
    tile.row_begin = row * size.rows;
    tile.row_end = std::min(tile.row_begin + size.rows, rows);
    tile.col_begin = col * size.panels * w.shape().panel;
    tile.col_end = std::min(tile.col_begin + size.panels * w.shape().panel, w.rows());
    run(x, w, options, y, tile);
  });
  if (options.norm && across > 1) normalize(y, options.norm, y, w.isa());
}

}  // namespace locant::inline v0
#endif
