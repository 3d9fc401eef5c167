// A rectangle of y = activation(x·Wᵀ + b)·factor + residual.

#if defined(LOCANT_KERNELS_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_LINEAR_INL_H_
#undef LOCANT_KERNELS_LINEAR_INL_H_
#else
#define LOCANT_KERNELS_LINEAR_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hwy/highway.h"
#include "locant/core/view.h"
#include "locant/kernels/activation-inl.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/linear.h"
#include "locant/kernels/matmul_tile.h"
#include "locant/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// How far ahead weights are asked for where few rows use them: then memory is the limit, and
// hardware prefetchers stop at the ends of pages.
constexpr size_t kWeightsAhead = 3072 / sizeof(float);

// GemmPanel with rows of A that are contiguous, lda apart: the same sums in the same order.
template <size_t kRows>
HWY_INLINE void StreamPanel(size_t depth, const float* HWY_RESTRICT a, ptrdiff_t lda,
                            const float* HWY_RESTRICT b, const float* init, ptrdiff_t ld_init,
                            float* c, ptrdiff_t ldc) {
  const hn::ScalableTag<float> d;
  constexpr size_t kN = kLanes<float>;
  constexpr size_t kLine = 64 / sizeof(float);
  Vec<float> lo[kRows], hi[kRows];
  Unroll<kRows>([&](auto r) HWY_ATTR {
    lo[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init);
    hi[r] = hn::LoadU(d, init + static_cast<ptrdiff_t>(r) * ld_init + kN);
  });
  for (size_t t = 0; t < depth; ++t, b += 2 * kN) {
    if (2 * kN >= kLine || t % (kLine / (2 * kN)) == 0) hwy::Prefetch(b + kWeightsAhead);
    if constexpr (2 * kN > kLine) hwy::Prefetch(b + kWeightsAhead + kLine);
    const Vec<float> b_lo = hn::Load(d, b), b_hi = hn::Load(d, b + kN);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const Vec<float> x =
          hn::Set(d, a[static_cast<ptrdiff_t>(r) * lda + static_cast<ptrdiff_t>(t)]);
      lo[r] = hn::MulAdd(x, b_lo, lo[r]);
      hi[r] = hn::MulAdd(x, b_hi, hi[r]);
    });
  }
  Unroll<kRows>([&](auto r) HWY_ATTR {
    hn::StoreU(lo[r], d, c + static_cast<ptrdiff_t>(r) * ldc);
    hn::StoreU(hi[r], d, c + static_cast<ptrdiff_t>(r) * ldc + kN);
  });
}

class LinearKernel {
 public:
  LinearKernel(const ConstView& x, const PackedMatrix& w, const LinearOptions& options,
               const View& y, const MatmulTile& tile)
      : x_(x), w_(w), options_(options), y_(y), tile_(tile), arena_(Arena::of_this_thread()) {}

  // Every element is summed over the depth in the same order, wherever it stands in a tile. The
  // rows' results stay in the second-level cache while the blocks of the depth pass, and a panel of
  // W in the first while the rows do.
  void run() {
    const Arena::Scope scope(arena_);
    const int64_t depth = w_.depth();
    float* block = arena_.take<float>((tile_.row_end - tile_.row_begin) *
                                      std::min(depth, PackedMatrix::kDepthBlock));
    edge_ = arena_.take<float>(kMaxRows * kP);
    for (int64_t t = 0; t < depth; t += PackedMatrix::kDepthBlock)
      run_block(t, std::min(depth - t, PackedMatrix::kDepthBlock), block);
  }

 private:
  static constexpr int64_t kP = static_cast<int64_t>(kPanel<float>);

  // So few that reading W takes longer than the products.
  bool few_rows() const { return tile_.row_end - tile_.row_begin <= 8; }

  void run_block(int64_t t, int64_t depth, float* block) {
    const int64_t rows = tile_.row_end - tile_.row_begin;
    // Rows a power of two apart would meet in few sets of the first-level cache: a copy is dense.
    for (int64_t r = 0; r < rows; ++r)
      CopyRow(x_.at<float>(tile_.row_begin + r, t), 1, static_cast<size_t>(depth), 1.0f,
              block + r * depth);
    const bool last = t + depth == w_.depth();
    for (int64_t p = tile_.col_begin / kP; p * kP < tile_.col_end; ++p) {
      const float* b = w_.at(t, p);
      for (int64_t row = 0, n; row < rows; row += n) {
        n = static_cast<int64_t>(NextRows(static_cast<size_t>(rows - row)));
        multiply(tile_.row_begin + row, static_cast<size_t>(n), p, t == 0, last,
                 static_cast<size_t>(depth), block + row * depth, b);
      }
    }
  }

  // y[row .. row + count, panel p] = b (the first block), += x·Wᵀ, and what follows (the last).
  void multiply(int64_t row, size_t count, int64_t p, bool first, bool last, size_t depth,
                const float* a, const float* b) {
    const int64_t col = p * kP, cols = std::min(kP, w_.rows() - col);
    float* y = y_.at<float>(row, col);
    const ptrdiff_t ldy = y_.strides[0];
    const bool whole = cols == kP;
    float* c = whole ? y : edge_;
    const ptrdiff_t ldc = whole ? ldy : kP;
    if (!whole && !first)
      for (size_t r = 0; r < count; ++r) {
        std::fill_n(c + r * kP, kP, 0.0f);
        std::copy_n(y + static_cast<ptrdiff_t>(r) * ldy, cols, c + r * kP);
      }
    const float* init = first ? w_.bias() + col : c;
    const auto lda = static_cast<ptrdiff_t>(depth);
    WithRows(count, [&](auto rows) HWY_ATTR {
      if (few_rows())
        StreamPanel<rows>(depth, a, lda, b, init, first ? 0 : ldc, c, ldc);
      else
        GemmPanel<rows>(depth, a, lda, b, init, first ? 0 : ldc, c, ldc);
    });
    if (last) finish(row, count, col, cols, c, ldc);
    if (!whole)
      for (size_t r = 0; r < count; ++r)
        std::copy_n(c + r * kP, cols, y + static_cast<ptrdiff_t>(r) * ldy);
  }

  // c = activation(c)·factor + residual
  HWY_NOINLINE void finish(int64_t row, size_t count, int64_t col, int64_t cols, float* c,
                           ptrdiff_t ldc) const {
    const hn::ScalableTag<float> d;
    constexpr size_t kN = kLanes<float>;
    if (options_.activation != Activation::none)
      for (size_t r = 0; r < count; ++r)
        for (size_t e = 0; e < kP; e += kN) {
          float* at = c + static_cast<ptrdiff_t>(r) * ldc + e;
          hn::StoreU(Activate(options_.activation, hn::LoadU(d, at)), d, at);
        }
    const auto combine = [&](const ConstView& with, auto&& f) HWY_ATTR {
      for (size_t r = 0; r < count; ++r) {
        float* to = c + static_cast<ptrdiff_t>(r) * ldc;
        const float* from = with.at<float>(row + static_cast<int64_t>(r), col);
        if (cols == kP) {
          for (size_t e = 0; e < kP; e += kN)
            hn::StoreU(f(hn::LoadU(d, to + e), hn::LoadU(d, from + e)), d, to + e);
        } else {
          const hn::CappedTag<float, 1> one;
          for (int64_t e = 0; e < cols; ++e)
            hn::StoreU(f(hn::LoadU(one, to + e), hn::LoadU(one, from + e)), one, to + e);
        }
      }
    };
    if (options_.factor)
      combine(options_.factor, [](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); });
    if (options_.residual)
      combine(options_.residual, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  }

  const ConstView& x_;  // (M, K)
  const PackedMatrix& w_;
  const LinearOptions& options_;
  const View& y_;  // (M, N)
  const MatmulTile& tile_;
  Arena& arena_;
  float* edge_ = nullptr;  // (6, panel): where a result has no room for a whole panel
};

// Panel p of W, of all blocks of the depth, to where PackedMatrix::at() says it is.
inline void PackPanel(const PackedMatrix& w, int64_t p, const std::vector<WeightRow>& rows) {
  constexpr int64_t kP = static_cast<int64_t>(kPanel<float>);
  const int64_t first = p * kP, count = std::min(kP, w.rows() - first);
  const auto from = [&](int64_t n, int64_t t) {
    const WeightRow& row = rows[n];
    const int64_t bytes = t * row.col_stride * static_cast<int64_t>(size_of(row.dtype));
    return Matrix{static_cast<const std::byte*>(row.data) + bytes, row.dtype, row.row_stride,
                  row.col_stride};
  };
  for (int64_t t = 0; t < w.depth(); t += PackedMatrix::kDepthBlock) {
    const int64_t depth = std::min(PackedMatrix::kDepthBlock, w.depth() - t);
    float* out = const_cast<float*>(w.at(t, p));  // NOLINT: this is where it is filled
    if (rows[first].piece == rows[first + count - 1].piece) {
      PackColumns<float>(from(first, t), 0, static_cast<size_t>(count), static_cast<size_t>(depth),
                         1.0f, out);
      continue;
    }
    std::fill_n(out, depth * kP, 0.0f);
    for (int64_t n = 0; n < count; ++n) {
      const Matrix m = from(first + n, t);
      WithStored(m.dtype, [&](auto stored) HWY_ATTR {
        const auto* in = m.row<decltype(stored)>(0);
        for (int64_t s = 0; s < depth; ++s)
          out[s * kP + n] = static_cast<float>(in[s * m.col_stride]);
      });
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_LINEAR_INL_H_
