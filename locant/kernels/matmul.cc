#include "locant/kernels/matmul.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "locant/core/executor.h"
#include "locant/core/overlap.h"
#include "locant/kernels/isa_dispatch.h"
#include "locant/kernels/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/matmul.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

void RunMatmul(const ConstView& a, const ConstView& b, const View& out, const MatmulTile& tile) {
  if (out.dtype == DType::f64) {
    MatmulKernel<double>(a, b, out, tile).run();
  } else {
    MatmulKernel<float>(a, b, out, tile).run();
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RunMatmul);

namespace {

// A tile's columns of b fit the second-level cache; its rows repay packing them.
constexpr int64_t kTileRows = 960;
constexpr int64_t kTileCols = 192;

void check(const ConstView& a, const ConstView& b, const View& out) {
  require(a.rank == 2 && b.rank == 2 && out.rank == 2 && a.shape[1] == b.shape[1] &&
              out.shape[0] == a.shape[0] && out.shape[1] == b.shape[0],
          "matmul", "shapes must be (M, K), (N, K) and (M, N), got ", shape_text(a), ", ",
          shape_text(b), " and ", shape_text(out));
  for (const auto& [name, view] : {std::pair("a", a), {"b", b}, {"out", ConstView(out)}})
    require(view.data != nullptr || view.size() == 0, "matmul", name, " must not be null");
  require(out.dtype == DType::f32 || out.dtype == DType::f64, "matmul",
          "out must be f32 or f64, got ", name_of(out.dtype));
  for (const DType dtype : {a.dtype, b.dtype})
    require(dtype != DType::boolean && dtype != DType::i64, "matmul",
            "a and b must be floating point, got ", name_of(dtype));
  require(!may_overlap(out, a) && !may_overlap(out, b), "matmul", "out overlaps a or b in memory");
}

}  // namespace

void matmul(const ConstView& a, const ConstView& b, const View& out) {
  check(a, b, out);
  const int64_t rows = out.shape[0], cols = out.shape[1];
  const int64_t across = (cols + kTileCols - 1) / kTileCols;
  const int64_t down = (rows + kTileRows - 1) / kTileRows;
  const auto run = LOCANT_DISPATCH(RunMatmul);
  executor()->parallel_for(across * down, [&](int64_t index, int) {
    MatmulTile tile;
    tile.row_begin = index / across * kTileRows;
    tile.row_end = std::min(tile.row_begin + kTileRows, rows);
    tile.col_begin = index % across * kTileCols;
    tile.col_end = std::min(tile.col_begin + kTileCols, cols);
    run(a, b, out, tile);
  });
}

}  // namespace locant::inline v0
#endif
