// A rectangle of out = a·bᵀ: b is packed into panels that stay in the second-level cache, and each
// panel meets many rows of a while it is in the first.

#if defined(LOCANT_KERNELS_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_MATMUL_INL_H_
#undef LOCANT_KERNELS_MATMUL_INL_H_
#else
#define LOCANT_KERNELS_MATMUL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/core/view.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/matmul_tile.h"
#include "locant/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

template <class T>
class MatmulKernel {
 public:
  MatmulKernel(const ConstView& a, const ConstView& b, const View& out, const MatmulTile& tile)
      : a_(Matrix::of(a, 0, 0)),
        b_(Matrix::of(b, 0, 0)),
        out_(out),
        tile_(tile),
        depth_(static_cast<size_t>(a.shape[1])),
        arena_(Arena::of_this_thread()) {}

  // Every element is summed over the depth in the same order, wherever it stands in a tile.
  void run() {
    const Arena::Scope scope(arena_);
    const size_t cols = static_cast<size_t>(tile_.col_end - tile_.col_begin);
    panels_ = (cols + kP - 1) / kP;
    T* b = arena_.take<T>(panels_ * kP * std::min(depth_, kDepthBlock));
    edge_ = arena_.take<T>(kMaxRows * kP);
    // A product over nothing is a sum of no terms.
    for (size_t t = 0; t == 0 || t < depth_; t += kDepthBlock) {
      const size_t depth = std::min(kDepthBlock, depth_ - t);
      pack_b(static_cast<int64_t>(t), depth, cols, b);
      for (int64_t row = tile_.row_begin; row < tile_.row_end; row += kRowBlock)
        run_rows(row, std::min(row + kRowBlock, tile_.row_end), t, depth, b);
    }
  }

 private:
  static constexpr size_t kP = kPanel<T>;
  // A panel of b is half a first-level cache. kRowBlock rows of a stay in the second-level cache
  // beside the packed b while all its panels pass.
  static constexpr size_t kDepthBlock = 1024 / sizeof(T);
  static constexpr int64_t kRowBlock = 96;

  // Columns [col_begin, col_end) of bᵀ, rows [t, t + depth) -> (panels, depth, panel).
  void pack_b(int64_t t, size_t depth, size_t cols, T* out) const {
    const auto shifted = [&](const Matrix& m, int64_t columns) {
      const int64_t bytes = columns * m.col_stride * static_cast<int64_t>(size_of(m.dtype));
      return Matrix{static_cast<const std::byte*>(m.data) + bytes, m.dtype, m.row_stride,
                    m.col_stride};
    };
    if (b_.row_stride == 1 && b_.col_stride != 1) {  // bᵀ is stored: its rows can be copied
      const Matrix transposed{b_.data, b_.dtype, b_.col_stride, b_.row_stride};
      PackRows<T>(shifted(transposed, tile_.col_begin), t, depth, cols, out);
    } else {
      PackColumns<T>(shifted(b_, t), tile_.col_begin, cols, depth, T(1), out);
    }
  }

  void run_rows(int64_t begin, int64_t end, size_t t, size_t depth, const T* b) {
    const Arena::Scope scope(arena_);
    const size_t rows = static_cast<size_t>(end - begin);
    Matrix block = a_;
    block.data = static_cast<const std::byte*>(a_.data) +
                 static_cast<int64_t>(t) * a_.col_stride * static_cast<int64_t>(size_of(a_.dtype));
    const Rows<T> a = RowsOf<T>(block, begin, rows, depth, T(1), Matrix{}, arena_);
    for (size_t p = 0; p < panels_; ++p)
      for (size_t row = 0, n; row < rows; row += n) {
        n = NextRows(rows - row);
        multiply(begin + static_cast<int64_t>(row), n, p, t > 0, depth, a.row(row), a.stride,
                 b + p * depth * kP);
      }
  }

  // out[row .. row + count, panel p] (+)= the product over this block of the depth.
  void multiply(int64_t row, size_t count, size_t p, bool accumulate, size_t depth, const T* a,
                ptrdiff_t lda, const T* b) {
    const int64_t col = tile_.col_begin + static_cast<int64_t>(p * kP);
    const size_t cols = static_cast<size_t>(std::min<int64_t>(kP, tile_.col_end - col));
    const bool in_place = cols == kP && out_.strides[1] == 1;
    T* out = out_.at<T>(row, col);
    T* c = in_place ? out : edge_;
    const ptrdiff_t ldc = in_place ? out_.strides[0] : static_cast<ptrdiff_t>(kP);
    if (!in_place && accumulate)
      for (size_t r = 0; r < count; ++r)
        for (size_t e = 0; e < kP; ++e) c[r * kP + e] = e < cols ? *element(out, r, e) : T(0);
    WithRows(count, [&](auto rows) HWY_ATTR {
      GemmPanel<rows>(depth, a, lda, b, accumulate ? c : nullptr, ldc, c, ldc);
    });
    if (!in_place)
      for (size_t r = 0; r < count; ++r)
        for (size_t e = 0; e < cols; ++e) *element(out, r, e) = c[r * kP + e];
  }

  T* element(T* out, size_t r, size_t e) const {
    return out + static_cast<int64_t>(r) * out_.strides[0] +
           static_cast<int64_t>(e) * out_.strides[1];
  }

  const Matrix a_, b_;  // (M, K), (N, K)
  const View& out_;     // (M, N)
  const MatmulTile& tile_;
  const size_t depth_;
  Arena& arena_;
  size_t panels_ = 0;
  T* edge_ = nullptr;  // (kMaxRows, panel): where a result has no room for a whole panel
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_MATMUL_INL_H_
