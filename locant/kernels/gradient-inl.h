// Gradients of the position terms on one block of keys: the transposes of position-inl.h.
//
//   query side   W = unshear(D);           dX += W·T;   dT += Wᵀ·X     (D = dS; or P for values)
//   key side     H[row(d), j] += dS[i,j];  dK += Hᵀ·T;  dT += H·K

#if defined(LOCANT_KERNELS_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_GRADIENT_INL_H_
#undef LOCANT_KERNELS_GRADIENT_INL_H_
#else
#define LOCANT_KERNELS_GRADIENT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/kernels/shear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Rows [row, row + count) of the chunk against panels [panel_begin, panel_end) of the block.
template <class T>
struct Tile {
  RowGroup rows;
  const T* d = nullptr;  // (count, ldd): dS or P, at the block's first key
  size_t ldd = 0;
};

// Where the gradient of a table goes: rows of `width` numbers, the first for table row `first_row`.
template <class T>
struct TableTarget {
  T* data = nullptr;
  int64_t first_row = 0;
  size_t width = 0;
  T* row(int64_t table_row) const {
    return data + static_cast<size_t>(table_row - first_row) * width;
  }
};

// Rows [first_row, first_row + rows) of a table: (panels, rows, panel).
template <class T>
struct TableRows {
  const T* data = nullptr;
  int64_t first_row = 0;
  size_t rows = 0;
  size_t panel_stride() const { return rows * kPanel<T>; }
  // The first panel from a table row on.
  const T* row(int64_t table_row) const {
    return data + static_cast<size_t>(table_row - first_row) * kPanel<T>;
  }
};

template <class T>
struct QuerySideGradient {
  Strip<T> strip;
  size_t panels = 0;     // of the rows of T, X and their gradients
  TableRows<T> table;    // times a factor; no data: no dX wanted
  TableTarget<T> target;
  T* plus = nullptr;  // (width): sum of the rows of W·T, or null
  T* w = nullptr;     // (rows of a tile, ldw)
  size_t ldw = 0;
  T* column_sums = nullptr;  // (ldw)
  T* sums = nullptr;         // (ldw, square): scratch

  // max_rows, max_keys: of a tile.
  void build(const Strip<T>& of, const TableRows<T>& packed, size_t depth,
             const TableTarget<T>& where, T* plus_gradient, size_t max_rows, size_t max_keys,
             Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    strip = of;
    panels = (depth + kP - 1) / kP;
    target = where;
    plus = plus_gradient;
    table = packed;
    // A tile touches no more rows than it has offsets, unless the map leaps.
    ldw = (strip.unit_steps ? std::min(strip.count, max_rows + max_keys) : strip.count) + kP;
    w = arena.take<T>(max_rows * ldw);
    column_sums = arena.take<T>(ldw);
#if HWY_TARGET != HWY_SCALAR
    sums = arena.take<T>(ldw * kSquare<T>);
#endif
  }

  // x (panels, tile rows, panel);  dx (tile rows, width) or null
  void add(const KeyBlock<T>& block, const Tile<T>& tile, const T* x, T* dx) {
    const RowGroup& rows = tile.rows;
    const size_t lo = first_of(block, rows, rows.row + rows.count - 1);
    const size_t hi = last_of(block, rows, rows.row);
    for (size_t r = 0; r < rows.count;) r += unshear(block, tile, r, lo, hi);
    if (dx != nullptr) add_to_rows(block, rows, lo, dx);
    if (plus != nullptr) add_to_plus(block, rows, lo, hi + 1 - lo);
    add_to_table(block, rows, lo, hi, x);
  }

 private:
  // W of one row or, where that is faster, of a few; returns how many. Numbers that no offset of a
  // row has are zero as far as products read them: a group has kMaxRows rows, or table rows.
  size_t unshear(const KeyBlock<T>& block, const Tile<T>& tile, size_t r, size_t lo,
                 size_t hi) const {
    constexpr size_t kP = kPanel<T>;
    const RowGroup& rows = tile.rows;
    const size_t start = StripStart(block, rows.row + r, rows.panel_begin);
    const size_t keys = (rows.panel_end - rows.panel_begin) * kP;
    const T* from = tile.d + r * tile.ldd + rows.panel_begin * kP;
    const auto clear = [&](T* row, size_t first, size_t last) {
      std::fill(row + (first > kMaxRows ? first - kMaxRows : 0), row + first, T(0));
      std::fill(row + last + 1, row + std::min(last + 1 + kMaxRows, hi + 1 - lo), T(0));
    };
    const size_t first = static_cast<size_t>(strip.rows[start]) - lo;
    const size_t last = static_cast<size_t>(strip.rows[start + keys - 1]) - lo;
    T* out = w + r * ldw;
    const Slope slope = strip.slope(start, start + keys - 1);
    if (slope == Slope::linear) {
      std::copy_n(from, keys, out + first);
      clear(out, first, last);
      return 1;
    }
#if HWY_TARGET != HWY_SCALAR
    constexpr size_t kS = kSquare<T>;
    if (slope == Slope::unit && r + kS <= rows.count) {
      const size_t lowest = static_cast<size_t>(strip.rows[start - (kS - 1)]) - lo;
      UnshearSquare(from, tile.ldd, strip.rows + start, keys, sums, out + lowest, ldw);
      for (size_t n = 0; n < kS; ++n) clear(out + n * ldw, lowest, last);
      return kS;
    }
#endif
    std::fill_n(out, hi + 1 - lo, T(0));
    UnshearRow(from, strip.rows + start, keys / kP, strip.unit_steps,
               out - static_cast<ptrdiff_t>(lo));
    return 1;
  }

  // The table rows that one row of the tile touches, from the block's first.
  size_t first_of(const KeyBlock<T>& block, const RowGroup& rows, size_t row) const {
    return static_cast<size_t>(strip.rows[StripStart(block, row, rows.panel_begin)]);
  }
  size_t last_of(const KeyBlock<T>& block, const RowGroup& rows, size_t row) const {
    return static_cast<size_t>(strip.rows[StripStart(block, row, rows.panel_end) - 1]);
  }

  // dX += W·T, a group of rows at a time, each group with the table rows that it touches.
  void add_to_rows(const KeyBlock<T>& block, const RowGroup& rows, size_t lo, T* dx) const {
    for (size_t r = 0, n; r < rows.count; r += n) {
      n = NextRows(rows.count - r);
      const size_t first = first_of(block, rows, rows.row + r + n - 1);
      const size_t last = last_of(block, rows, rows.row + r);
      AddProduct<Read::rows>(n, last + 1 - first, w + r * ldw + (first - lo), ldw,
                             table.row(strip.lo + static_cast<int64_t>(first)),
                             table.panel_stride(), panels, dx + r * target.width, target.width);
    }
  }

  void add_to_plus(const KeyBlock<T>& block, const RowGroup& rows, size_t lo, size_t count) const {
    std::fill_n(column_sums, count, T(0));
    for (size_t r = 0; r < rows.count; ++r) {
      const size_t last = last_of(block, rows, rows.row + r) - lo;
      for (size_t c = first_of(block, rows, rows.row + r) - lo; c <= last; ++c)
        column_sums[c] += w[r * ldw + c];
    }
    AddProduct<Read::rows>(1, count, column_sums, ldw,
                           table.row(strip.lo + static_cast<int64_t>(lo)), table.panel_stride(),
                           panels, plus, target.width);
  }

  // dT += Wᵀ·X, a few table rows at a time, each with the tile's rows that touch one of them: rows
  // further down touch smaller table rows.
  void add_to_table(const KeyBlock<T>& block, const RowGroup& rows, size_t lo, size_t hi,
                    const T* x) const {
    constexpr size_t kP = kPanel<T>;
    size_t begin = rows.count, end = rows.count;
    for (size_t at = lo, n; at <= hi; at += n) {
      n = NextRows(hi + 1 - at);
      while (begin > 0 && first_of(block, rows, rows.row + begin - 1) < at + n) --begin;
      while (end > begin && last_of(block, rows, rows.row + end - 1) < at) --end;
      AddProduct<Read::columns>(n, end - begin, w + begin * ldw + (at - lo), ldw, x + begin * kP,
                                rows.count * kP, panels,
                                target.row(strip.lo + static_cast<int64_t>(at)), target.width);
    }
  }
};

template <class T>
struct KeySideGradient {
  Strip<T> strip;
  size_t panels = 0;
  TableRows<T> table;  // times a factor
  TableTarget<T> target;
  T* h = nullptr;  // (panels of keys, table rows, panel)

  void build(const Strip<T>& of, const TableRows<T>& packed, const TableTarget<T>& where,
             const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    strip = of;
    panels = (block.depth + kP - 1) / kP;
    target = where;
    table = packed;
    h = arena.take<T>(block.panels * strip.count * kP);
    for (size_t p = 0; p < block.panels; ++p)
      std::fill_n(h + (p * strip.count + first_of(p)) * kP,
                  (last_of(block, p) + 1 - first_of(p)) * kP, T(0));
  }

  // H += the tile's dS.
  void add(const KeyBlock<T>& block, const Tile<T>& tile) const {
    for (size_t r = 0, n; r < tile.rows.count; r += n) {
      n = NextRows(tile.rows.count - r);
      WithRows(n, [&](auto count) HWY_ATTR { add_rows<count>(block, tile, r); });
    }
  }

  // dK += Hᵀ·T,  dT += H·K.   k (panels, keys, panel): rows of K;  dk (keys, width)
  void finish(const KeyBlock<T>& block, const T* k, T* dk) const {
    constexpr size_t kP = kPanel<T>;
    for (size_t p = 0; p < block.panels; ++p) {
      const size_t first = first_of(p), count = last_of(block, p) + 1 - first;
      const size_t keys = std::min(kP, block.keys - p * kP);
      const T* from = h + (p * strip.count + first) * kP;
      const int64_t row = strip.lo + static_cast<int64_t>(first);
      AddProduct<Read::columns>(keys, count, from, kP, table.row(row), table.panel_stride(), panels,
                                dk + p * kP * target.width, target.width);
      AddProduct<Read::rows>(count, keys, from, kP, k + p * kP * kP, block.keys * kP, panels,
                             target.row(row), target.width);
    }
  }

 private:
  // The table rows that a panel of keys touches.
  size_t first_of(size_t panel) const { return static_cast<size_t>(strip.rows[panel * kPanel<T>]); }
  size_t last_of(const KeyBlock<T>& block, size_t panel) const {
    return static_cast<size_t>(strip.rows[(panel + 1) * kPanel<T> - 1 + block.rows - 1]);
  }

  template <size_t kRows>
  void add_rows(const KeyBlock<T>& block, const Tile<T>& tile, size_t r) const {
    const hn::ScalableTag<T> d;
    constexpr size_t kP = kPanel<T>;
    constexpr size_t kN = kLanes<T>;
    for (size_t p = tile.rows.panel_begin; p < tile.rows.panel_end; ++p) {
      const Index<T>* at = strip.rows + StripStart(block, tile.rows.row + r, p) - (kRows - 1);
      T* to = h + p * strip.count * kP;
      const T* from = tile.d + r * tile.ldd + p * kP;
      const bool constant = at[0] == at[kP + kRows - 2];
      Unroll<2>([&](auto half) HWY_ATTR {
        constexpr size_t kOffset = half * kN;
        Vec<T> x[kN + kRows - 1];
        Unroll<kRows>([&](auto row) HWY_ATTR {
          x[kRows - 1 - row] = hn::LoadU(d, from + row * tile.ldd + kOffset);
        });
        if (constant) {
          T* sum = to + static_cast<size_t>(at[0]) * kP + kOffset;
          Unroll<kRows - 1>([&](auto row) HWY_ATTR { x[0] = hn::Add(x[0], x[row + 1]); });
          hn::Store(hn::Add(hn::Load(d, sum), x[0]), d, sum);
        } else {
          AddDiagonals<kRows>(to + kOffset, at + kOffset, x);
        }
      });
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_GRADIENT_INL_H_
