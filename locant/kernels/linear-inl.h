// A rectangle of y = norm(activation(x·Wᵀ + b)·(x·Fᵀ + f) + residual); with the norm if it has
// whole rows.

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
#include "locant/kernels/norm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/prefetch.h"
#include "locant/kernels/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

class LinearKernel {
 public:
  LinearKernel(const ConstView& x, const PackedMatrix& w, const LinearOptions& options,
               const View& y, const MatmulTile& tile)
      : x_(x),
        w_(w),
        options_(options),
        y_(y),
        tile_(tile),
        begin_(tile.col_begin / kP),
        end_((tile.col_end + kP - 1) / kP),
        arena_(Arena::of_this_thread()) {}

  // How W (·, depth) is packed. With x in place, blocks are as deep as pays, since results pass
  // through memory once a block, and equally deep; else a panel is half a first-level cache.
  static LinearShape shape_for(int64_t depth) {
    constexpr int64_t kDeepest = kInPlace ? 1024 : 256;
    int64_t block = kDeepest;
    if (kInPlace) {
      const int64_t blocks = (depth + kDeepest - 1) / kDeepest;
      block = (depth + blocks - 1) / blocks;
    }
    return {.panel = kP, .block = block, .rows = static_cast<int64_t>(kMaxRows)};
  }

  // Every element is summed over the depth in the same order, wherever it stands in a tile. The
  // rows' results stay in the second-level cache while the blocks of the depth pass, and a panel of
  // W in the first (or, deeper ones, in the second) while the rows do.
  void run() {
    const Arena::Scope scope(arena_);
    if (!kInPlace) copy_ = arena_.take<float>(rows() * w_.block(0));
    edge_ = arena_.take<float>(kMaxRows * kP);
    if (options_.factor != nullptr) factor_ = arena_.take<float>(rows() * cols());
    for (int64_t t = 0; t < w_.depth(); t += w_.block(t)) run_block(t, w_.block(t));
    if (options_.norm && cols() == w_.rows()) normalize_rows();
  }

 private:
  static constexpr int64_t kP = static_cast<int64_t>(kPanel<float>);

  // Cores with AVX-512 read rows of x where they lie as fast as a copy, whatever their distance;
  // there making the copy is what shows (docs/decisions/0016).
  static constexpr bool kInPlace = HWY_TARGET <= HWY_AVX3;

  // W or F, and where its results go: rows ldy apart.
  struct Product {
    const PackedMatrix& w;
    float* y;
    ptrdiff_t ldy;
    bool finished;  // by what follows the product
  };

  // Rows of x on a block of the depth: element (r, t) of a group of them is at[r·row + t·step].
  struct Operand {
    const float* at;
    ptrdiff_t row, step;
  };

  int64_t rows() const { return tile_.row_end - tile_.row_begin; }
  int64_t cols() const { return tile_.col_end - tile_.col_begin; }

  // So many that each group of them can ask for a part of the next panel, and that they are worth
  // interleaving. Otherwise a group asks for its own panel, some steps ahead.
  bool many_rows() const { return rows() >= (kInPlace ? 4 : 10 * static_cast<int64_t>(kMaxRows)); }

  // The group of `count` rows that begins at `row` of the tile, on the block that begins at t.
  Operand group(int64_t row, size_t count, int64_t t, size_t depth) const {
    if (kInPlace)
      return {x_.at<float>(tile_.row_begin + row, t), static_cast<ptrdiff_t>(x_.strides[0]), 1};
    const float* at = copy_ + row * static_cast<int64_t>(depth);
    return many_rows() ? Operand{at, 1, static_cast<ptrdiff_t>(count)}
                       : Operand{at, static_cast<ptrdiff_t>(depth), 1};
  }

  void run_block(int64_t t, int64_t depth) {
    if (!kInPlace) copy_rows(t, depth);
    const PackedMatrix& first = factor_ == nullptr ? w_ : *options_.factor;
    if (factor_ != nullptr) run_panels({first, factor_, cols(), false}, t, depth, w_.at(t, begin_));
    // The tile goes on with the next block. After the last one come tiles of the same columns,
    // whose W is near, and then the next columns.
    const bool last = t + depth == w_.depth();
    run_panels({w_, y_.at<float>(tile_.row_begin, tile_.col_begin), y_.strides[0], true}, t, depth,
               last ? first.at(0, end_ < w_.panels() ? end_ : 0) : first.at(t + depth, begin_));
  }

  // Rows a power of two apart would meet in few sets of the first-level cache: a copy is dense.
  void copy_rows(int64_t t, int64_t depth) {
    if (many_rows()) {
      InterleaveRows(x_, tile_.row_begin, tile_.row_end, t, depth, copy_);
      return;
    }
    for (int64_t r = 0; r < rows(); ++r)
      CopyRow(x_.at<float>(tile_.row_begin + r, t), 1, static_cast<size_t>(depth), 1.0f,
              copy_ + r * depth);
  }

  // `after`: what is read after these panels.
  void run_panels(const Product& product, int64_t t, int64_t depth, const float* after) {
    int64_t p = begin_;
    const int64_t together = panels_side_by_side(rows()), whole = std::min(end_, w_.rows() / kP);
    for (; together > 1 && p + together <= whole; p += together)
      multiply_side_by_side(product, p, t, static_cast<size_t>(depth));
    for (; p < end_; ++p) {
      const float* next = p + 1 < end_ ? product.w.at(t, p + 1) : after;
      if (many_rows() && p < whole) {
        multiply_many(product, p, t, static_cast<size_t>(depth), next);
        continue;
      }
      for (int64_t row = 0, n; row < rows(); row += n) {
        n = static_cast<int64_t>(NextRows(static_cast<size_t>(rows() - row)));
        multiply(product, row, static_cast<size_t>(n), p, t, static_cast<size_t>(depth), next);
      }
    }
  }

  // y[row .. row + count, panel p] = b (the first block), += x·Wᵀ, and what follows (the last).
  void multiply(const Product& product, int64_t row, size_t count, int64_t p, int64_t t,
                size_t depth, const float* next) {
    const bool first = t == 0, last = t + static_cast<int64_t>(depth) == w_.depth();
    const int64_t col = p * kP - tile_.col_begin, cols = std::min(kP, w_.rows() - p * kP);
    const ptrdiff_t ldy = product.ldy;
    float* y = product.y + row * ldy + col;
    const bool whole = cols == kP;
    float* c = whole ? y : edge_;
    const ptrdiff_t ldc = whole ? ldy : kP;
    if (!whole && !first)
      for (size_t r = 0; r < count; ++r) {
        std::fill_n(c + r * kP, kP, 0.0f);
        std::copy_n(y + static_cast<ptrdiff_t>(r) * ldy, cols, c + r * kP);
      }
    const float *b = product.w.at(t, p), *init = first ? product.w.bias() + p * kP : c;
    const Operand a = group(row, count, t, depth);
    WithRows(count, [&](auto rows) HWY_ATTR {
      if (many_rows())
        GemmPanel<rows>(depth, a.at, a.row, a.step, b, init, first ? 0 : ldc, c, ldc);
      else
        StreamPanel<rows>(depth, a.at, a.row, b, next, init, first ? 0 : ldc, c, ldc);
    });
    if (last && product.finished)
      finish(row, count, col, cols, {c, ldc}, {y, ldy});
    else if (!whole)
      for (size_t r = 0; r < count; ++r)
        std::copy_n(c + r * kP, cols, y + static_cast<ptrdiff_t>(r) * ldy);
  }

  // The same for all of many rows and a whole panel. While a group of rows passes, its share of the
  // next panel comes from memory.
  HWY_NOINLINE void multiply_many(const Product& product, int64_t p, int64_t t, size_t depth,
                                  const float* next) {
    const bool first = t == 0, last = t + static_cast<int64_t>(depth) == w_.depth();
    const int64_t col = p * kP - tile_.col_begin;
    const ptrdiff_t ldy = product.ldy, ld_init = first ? 0 : ldy;
    const bool to_finish = last && product.finished && has_finish();
    const float* b = product.w.at(t, p);
    float* y = product.y + col;
    const float* init = first ? product.w.bias() + p * kP : y;
    size_t left = static_cast<size_t>(rows());
    const size_t lines = depth * kP / kLine;  // of a panel
    Ahead ahead{next, next + lines * kLine, (lines * kMaxRows + left - 1) / left};
    while (left > 0) {
      const size_t count = NextRows(left);
      const int64_t row = rows() - static_cast<int64_t>(left);
      const Operand a = group(row, count, t, depth);
      if (!kInPlace) ahead.ask_at_once();
      // The first panel of a tile is where its rows of x come from far away.
      ahead.rows = p == begin_ && left >= 2 * kMaxRows
                       ? x_.at<float>(tile_.row_begin + row + static_cast<int64_t>(count), t)
                       : nullptr;
      if (first) PrefetchRowsToWrite(y, ldy, count, kP);  // while the products run
      if (to_finish) ask_for_residual(row, count, col);
      float* c = to_finish ? edge_ : y;
      const ptrdiff_t ldc = to_finish ? kP : ldy;
      WithRows(count, [&](auto rows) HWY_ATTR {
        if constexpr (kInPlace)
          GemmPanelAhead<rows>(depth, a.at, a.row, b, init, ld_init, c, ldc, ahead);
        else
          GemmPanel<rows>(depth, a.at, 1, rows, b, init, ld_init, c, ldc);
      });
      if (to_finish) finish(row, count, col, kP, {c, ldc}, {y, ldy});
      y += static_cast<ptrdiff_t>(count) * ldy;
      init += static_cast<ptrdiff_t>(count) * ld_init;
      left -= count;
    }
  }

  // The same for all of few rows and whole panels from p on.
  void multiply_side_by_side(const Product& product, int64_t p, int64_t t, size_t depth) {
    const bool first = t == 0, last = t + static_cast<int64_t>(depth) == w_.depth();
    const int64_t col = p * kP - tile_.col_begin;
    const ptrdiff_t ldy = product.ldy;
    float* c = product.y + col;
    const float* init = first ? product.w.bias() + p * kP : c;
    const Operand a = group(0, static_cast<size_t>(rows()), t, depth);
    WithRows(static_cast<size_t>(rows()), [&](auto rows) HWY_ATTR {
      if constexpr (panels_side_by_side(rows) > 1)
        StreamPanels<rows, panels_side_by_side(rows)>(depth, a.at, a.row, product.w.at(t, p),
                                                      depth * kP, init, first ? 0 : ldy, c, ldy);
    });
    if (last && product.finished)
      for (int64_t n = 0; n < panels_side_by_side(rows()); ++n, c += kP)
        finish(0, static_cast<size_t>(rows()), col + n * kP, kP, {c, ldy}, {c, ldy});
  }

  // Whole rows are done here, where they are still in the second-level cache.
  void normalize_rows() const {
    for (int64_t row = tile_.row_begin; row < tile_.row_end; ++row) {
      float* y = y_.at<float>(row);
      Normalize(norm_row(y, nullptr, options_.norm, y, cols()));
    }
  }

  // What finish() will read of a whole panel, while the products run.
  void ask_for_residual(int64_t row, size_t count, int64_t col) const {
    const ConstView& residual = options_.residual;
    if (residual) PrefetchRows(residual_at(row, col), residual.strides[0], count, kP);
  }

  const float* residual_at(int64_t row, int64_t col) const {
    return options_.residual.at<float>(tile_.row_begin + row, tile_.col_begin + col);
  }

  struct Results {
    float* at;
    ptrdiff_t ld;
    float* row(size_t r) const { return at + static_cast<ptrdiff_t>(r) * ld; }
  };

  bool has_finish() const {
    return options_.activation != Activation::none || factor_ != nullptr || options_.residual;
  }

  // y = activation(c)·factor + residual; row and col are the tile's. c may be y; it has room for a
  // whole panel.
  HWY_NOINLINE void finish(int64_t row, size_t count, int64_t col, int64_t cols, Results c,
                           Results y) const {
    const int64_t ld_plus = options_.residual ? options_.residual.strides[0] : 0;
    const float* factor = factor_ == nullptr ? nullptr : factor_ + row * this->cols() + col;
    const float* plus = options_.residual ? residual_at(row, col) : nullptr;
    // Chosen once: what stands between two groups of rows is what keeps the products waiting.
    WithActivation(options_.activation, [&](auto activation) HWY_ATTR {
      for (size_t r = 0; r < count; ++r) {
        finish_row(activation, factor, plus, cols, c.row(r), y.row(r));
        if (factor != nullptr) factor += this->cols();
        plus += ld_plus;
      }
    });
  }

  template <class Constant>
  HWY_INLINE static void finish_row(Constant activation, const float* factor, const float* plus,
                                    int64_t cols, float* from, float* to) {
    const auto combine = [&](auto tag, auto x, int64_t e) HWY_ATTR {
      if (factor != nullptr) x = hn::Mul(x, hn::LoadU(tag, factor + e));
      if (plus != nullptr) x = hn::Add(x, hn::LoadU(tag, plus + e));
      hn::StoreU(x, tag, to + e);
    };
    const hn::ScalableTag<float> d;
    Unroll<2>([&](auto half) HWY_ATTR {
      constexpr int64_t kAt = half * kLanes<float>;
      const Vec<float> x = Activate(activation, hn::LoadU(d, from + kAt));
      if (cols == kP)
        combine(d, x, kAt);
      else
        hn::StoreU(x, d, from + kAt);
    });
    if (cols == kP) return;
    const hn::CappedTag<float, 1> one;
    for (int64_t e = 0; e < cols; ++e) combine(one, hn::LoadU(one, from + e), e);
  }

  const ConstView& x_;  // (M, K)
  const PackedMatrix& w_;
  const LinearOptions& options_;
  const View& y_;  // (M, N)
  const MatmulTile& tile_;
  const int64_t begin_, end_;  // panels
  Arena& arena_;
  float* copy_ = nullptr;    // (rows, depth of a block) of x, if it is not read in place
  float* factor_ = nullptr;  // (rows, cols) x·Fᵀ + f
  float* edge_ = nullptr;    // (kMaxRows, panel): results on their way to y, to be finished or cut
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
  for (int64_t t = 0; t < w.depth(); t += w.block(t)) {
    const int64_t depth = w.block(t);
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
