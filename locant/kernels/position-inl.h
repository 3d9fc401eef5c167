// The position terms of one head on one block of keys: what is prepared once per block, and what is
// added to the scores (or the output) of each small group of query rows.
//
// Offsets inside a block are numbered e = (j - first key) + (last row - i), so that along a row of
// scores e rises with j, and one row further down it is one less.

#if defined(LOCANT_KERNELS_POSITION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_POSITION_INL_H_
#undef LOCANT_KERNELS_POSITION_INL_H_
#else
#define LOCANT_KERNELS_POSITION_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/attention_call.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/shear-inl.h"
#include "locant/terms/terms.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// A block of keys as the position terms see it.
template <class T>
struct KeyBlock {
  size_t keys = 0, panels = 0;  // keys, and panels that hold them
  size_t depth = 0;             // head dim
  const T* k = nullptr;         // (panels, depth, panel), times k_scale
  T k_scale = 1;
  const T* zeros = nullptr;  // (panel)
  size_t rows = 0;           // query rows of the item
  int64_t first_offset = 0;  // offset of e = 0
  size_t offsets() const { return rows + panels * kPanel<T> - 1; }
};

// Query rows [row, row + count) of the item against panels [panel_begin, panel_end).
struct RowGroup {
  size_t row = 0, count = 0;
  size_t panel_begin = 0, panel_end = 0;
};

template <class T>
HWY_INLINE size_t StripStart(const KeyBlock<T>& block, size_t row, size_t panel) {
  return panel * kPanel<T> + (block.rows - 1 - row);
}

// A row map on the offsets of a block.
template <class T>
struct Strip {
  const Index<T>* rows = nullptr;  // table row - lo, per offset
  int64_t lo = 0;    // the block's first table row, or the first of the panel that it is in
  size_t count = 0;  // table rows from there to the block's last
  bool unit_steps = true;

  // from: where panels of table rows begin; lo is then the first row of one. -1: anywhere.
  void build(const RowMap& map, bool has_unit_steps, const KeyBlock<T>& block, Arena& arena,
             int64_t from = -1) {
    const size_t n = block.offsets();
    Index<T>* out = arena.take<Index<T>>(n + kPanel<T>);
    lo = map.row(block.first_offset);
    if (from >= 0) lo -= (lo - from) % static_cast<int64_t>(kPanel<T>);
    for (size_t e = 0; e < n; ++e)
      out[e] = static_cast<Index<T>>(map.row(block.first_offset + static_cast<int64_t>(e)) - lo);
    for (size_t e = n; e < n + kPanel<T>; ++e) out[e] = out[n - 1];
    rows = out;
    count = static_cast<size_t>(out[n - 1]) + 1;
    unit_steps = has_unit_steps;
  }

  Slope slope(size_t first, size_t last) const { return SlopeOf<T>(rows, first, last, unit_steps); }
};

// Where the scores of a row group start, panel by panel: rows `stride` apart, from a strip of
// biases (-1), zeros or one row for all (0), or the tile of scores itself.
template <class T>
struct PanelStart {
  const T* at = nullptr;
  ptrdiff_t stride = 0;
};

// S[r, panel] = start[r, panel] + G[r, row(offset)] for the rows of a group; g (rows, ldg).
// strip is at the first row's offsets; each further row's begin one lower.
template <Slope kSlope, class T>
HWY_INLINE void AddQuerySide(const T* g, ptrdiff_t ldg, const Index<T>* strip, size_t rows,
                             PanelStart<T> start, T* s, size_t lds) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  for (size_t r = 0; r < rows; ++r) {
    Unroll<2>([&](auto half) HWY_ATTR {
      constexpr size_t kOffset = half * kN;
      const Vec<T> x = ReadRow<kSlope>(g, strip - r + kOffset);
      hn::StoreU(hn::Add(x, hn::LoadU(d, start.at + kOffset)), d, s + kOffset);
    });
    g += ldg;
    start.at += start.stride;
    s += lds;
  }
}

template <class T>
HWY_INLINE void AddQuerySide(Slope slope, const T* g, ptrdiff_t ldg, const Index<T>* strip,
                             size_t rows, PanelStart<T> start, T* s, size_t lds) {
  switch (slope) {
    case Slope::constant:
      return AddQuerySide<Slope::constant>(g, ldg, strip, rows, start, s, lds);
    case Slope::linear:
      return AddQuerySide<Slope::linear>(g, ldg, strip, rows, start, s, lds);
    case Slope::unit:
      return AddQuerySide<Slope::unit>(g, ldg, strip, rows, start, s, lds);
    case Slope::any:
      return AddQuerySide<Slope::any>(g, ldg, strip, rows, start, s, lds);
  }
}

// S[r, panel] = start[r, panel] + G[row(offset), panel] for the rows of a group; g (table rows,
// panel).
template <size_t kRows, class T>
HWY_INLINE void AddKeySide(const T* g, const Index<T>* strip, PanelStart<T> start, T* s,
                           size_t lds) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  Unroll<2>([&](auto half) HWY_ATTR {
    constexpr size_t kOffset = half * kN;
    Vec<T> x[kN + kRows - 1];
    ReadDiagonals<kRows>(g + kOffset, strip + kOffset - (kRows - 1), x);
    Unroll<kRows>([&](auto r) HWY_ATTR {
      const T* from = start.at + static_cast<ptrdiff_t>(r) * start.stride + kOffset;
      hn::StoreU(hn::Add(x[kRows - 1 - r], hn::LoadU(d, from)), d, s + r * lds + kOffset);
    });
  });
}

// scale·<x, T[row(offset)]> on one block of keys.
//
// Often the term needs no pass over the scores. Where the map is constant on a whole tile (far from
// the diagonal) the query side is one number per row, which the softmax adds. Where a panel has no
// starting values yet, they can be read from the product itself: on the key side if the map is
// constant there (one row for all), on the query side if it is linear (rows ldg - 1 apart).
template <class T>
struct ProjectionBlock {
  Side side = Side::query;
  Strip<T> strip;
  Rows<T> x;                 // query side: rows of the item
  const T* table = nullptr;  // query side: (panels of table rows, depth, panel), times scale
  T* g = nullptr;  // query side: (a group's rows, ldg); key side: (panels, table rows, panel)
  size_t ldg = 0;
  T* single = nullptr;  // query side: table row single_row, (depth), times scale
  Index<T> single_row = -1;

  // packed: the table, if the call has packed it for all items.
  void build(const Projection& term, const PackedTable* packed, bool unit_steps, int64_t head,
             Rows<T> rows_of_x, const KeyBlock<T>& block, Arena& arena) {
    side = term.side;
    x = rows_of_x;
    strip.build(term.map, unit_steps, block, arena, packed == nullptr ? -1 : packed->first);
    const Matrix m = Matrix::of(term.table, 0, term.table.shape[0] == 1 ? 0 : head);
    if (side == Side::query) {
      table = packed == nullptr ? nullptr : packed->at<T>(head, strip.lo);
      build_query_side(m, static_cast<T>(term.scale), block, arena);
    } else {
      build_key_side(m, static_cast<T>(term.scale) / block.k_scale, block, arena);
    }
  }

  void build_query_side(const Matrix& m, T scale, const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    const size_t table_panels = (strip.count + kP - 1) / kP;
    if (table == nullptr) {
      T* packed = arena.take<T>(table_panels * kP * block.depth);
      PackColumns<T>(m, strip.lo, strip.count, block.depth, scale, packed);
      table = packed;
    }
    ldg = (table_panels + 1) * kP;  // reads of a full vector may begin at the last row
    g = arena.take<T>(kMaxRows * ldg);
    single = arena.take<T>(block.depth);
    single_row = -1;
  }

  // G[p, row, :] = T[row]·K panel p, for the rows that the panel's offsets reach. Each of its two
  // vectors reaches N rows less: the first of them, or the last.
  void build_key_side(const Matrix& m, T scale, const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>, kN = kLanes<T>;
    g = arena.take<T>(block.panels * strip.count * kP);
    const Rows<T> rows = RowsOf<T>(m, strip.lo, strip.count, block.depth, scale, Matrix{}, arena);
    const auto row_at = [&](size_t e) { return static_cast<size_t>(strip.rows[e]); };
    for (size_t p = 0; p < block.panels; ++p) {
      const T* k = block.k + p * block.depth * kP;
      T* out = g + p * strip.count * kP;
      const size_t e = p * kP, last_query = block.rows - 1;
      const size_t lo_end = row_at(e + kN - 1 + last_query) + 1, hi_begin = row_at(e + kN);
      const size_t end = row_at(e + kP - 1 + last_query) + 1;
      const bool ask = p == 0;  // later panels find most rows in the cache
      const auto half = [&](size_t from) HWY_ATTR {
        return [&, from](auto n, size_t row) HWY_ATTR {
          GemmHalfPanel<n>(block.depth, rows.row(row), rows.stride, k + from, out + row * kP + from,
                           kP);
        };
      };
      const auto both = [&](auto n, size_t row) HWY_ATTR {
        GemmPanel<n>(block.depth, rows.row(row), rows.stride, k, static_cast<const T*>(nullptr), 0,
                     out + row * kP, kP);
      };
      ForRows(row_at(e), std::min(lo_end, hi_begin), ask, rows, block.depth, half(0));
      ForRows(hi_begin, lo_end, ask, rows, block.depth, both);
      ForRows(std::max(lo_end, hi_begin), end, ask, rows, block.depth, half(kN));
    }
  }

  // f(count, row) for table rows [begin, end) in groups of the micro-kernel.
  template <class F>
  static void ForRows(size_t begin, size_t end, bool ask, const Rows<T>& rows, size_t depth,
                      F&& f) {
    for (size_t row = begin, n; row < end; row += n) {
      n = NextRows(end - row);
      if (ask) PrefetchRows(rows.row(row + n), rows.stride, kMaxRows, depth);
      WithRows(n, [&](auto count) HWY_ATTR { f(count, row); });
    }
  }

  // Adds this term to one group of rows: in S (whose panels then start there), in the panels'
  // starts, or in the rows' offsets.   starts (panels of the group);  s at the group's first panel
  void add(const KeyBlock<T>& block, const RowGroup& group, PanelStart<T>* starts, T* offset, T* s,
           size_t lds) {
    if (side == Side::query) {
      add_query_side(block, group, starts, offset, s, lds);
    } else {
      WithRows(group.count,
               [&](auto count) HWY_ATTR { add_key_side<count>(block, group, starts, s, lds); });
    }
  }

  void add_query_side(const KeyBlock<T>& block, const RowGroup& group, PanelStart<T>* starts,
                      T* offset, T* s, size_t lds) {
    constexpr size_t kP = kPanel<T>;
    const size_t last_row = group.row + group.count - 1;
    const Index<T> lo = strip.rows[StripStart(block, last_row, group.panel_begin)];
    const Index<T> hi = strip.rows[StripStart(block, group.row, group.panel_end) - 1];
    if (lo == hi) return add_single_row(block, group, lo, offset);
    multiply_query_side(block, group, lo, hi);
    for (size_t p = group.panel_begin; p < group.panel_end; ++p, ++starts, s += kP) {
      const size_t e = StripStart(block, group.row, p);
      const Slope slope = strip.slope(e - (group.count - 1), e + kP - 1);
      if (slope == Slope::linear && starts->at == block.zeros) {
        *starts = {g + strip.rows[e], static_cast<ptrdiff_t>(ldg) - 1};
      } else {
        AddQuerySide(slope, g, static_cast<ptrdiff_t>(ldg), strip.rows + e, group.count, *starts, s,
                     lds);
        *starts = {s, static_cast<ptrdiff_t>(lds)};
      }
    }
  }

  template <size_t kRows>
  void add_key_side(const KeyBlock<T>& block, const RowGroup& group, PanelStart<T>* starts, T* s,
                    size_t lds) const {
    constexpr size_t kP = kPanel<T>;
    for (size_t p = group.panel_begin; p < group.panel_end; ++p, ++starts, s += kP) {
      prefetch_key_side(block, group, p);
      const size_t e = StripStart(block, group.row, p);
      const T* panel = g + p * strip.count * kP;
      const bool constant = strip.rows[e - (kRows - 1)] == strip.rows[e + kP - 1];
      if (constant && starts->at == block.zeros) {
        *starts = {panel + static_cast<size_t>(strip.rows[e]) * kP, 0};
      } else {
        AddKeySide<kRows>(panel, strip.rows + e, *starts, s, lds);
        *starts = {s, static_cast<ptrdiff_t>(lds)};
      }
    }
  }

  // The products are as large as the second-level cache, and every row group reads a narrow
  // diagonal of them. Asks for the next panel's rows, and for the few that the next group will be
  // the first to read in this panel.
  void prefetch_key_side(const KeyBlock<T>& block, const RowGroup& group, size_t p) const {
    constexpr size_t kP = kPanel<T>;
    const auto prefetch = [&](size_t panel, size_t first_e, size_t last_e) {
      const size_t first = static_cast<size_t>(strip.rows[first_e]);
      const size_t last = static_cast<size_t>(strip.rows[last_e]);
      PrefetchRows(g + (panel * strip.count + first) * kP, static_cast<int64_t>(kP),
                   last + 1 - first, kP);
    };
    const size_t e = StripStart(block, group.row, p) - (group.count - 1);
    if (p + 1 < group.panel_end) prefetch(p + 1, e + kP, e + 2 * kP + group.count - 2);
    if (e > kMaxRows) prefetch(p, e - kMaxRows, e - 1);
  }

  // offset[r] += <x_r, T[row]>
  void add_single_row(const KeyBlock<T>& block, const RowGroup& group, Index<T> row, T* offset) {
    constexpr size_t kP = kPanel<T>;
    const size_t at = static_cast<size_t>(row);
    if (row != single_row) {  // the same for many groups in a row
      const T* column = table + at / kP * block.depth * kP + at % kP;
      for (size_t t = 0; t < block.depth; ++t) single[t] = column[t * kP];
      single_row = row;
    }
    for (size_t r = 0; r < group.count; ++r)
      offset[r] += Dot(x.row(group.row + r), single, block.depth);
  }

  // G[r, lo..hi] = X[r]·T[lo..hi]ᵀ for the rows of a group, in whole vectors.
  void multiply_query_side(const KeyBlock<T>& block, const RowGroup& group, Index<T> lo,
                           Index<T> hi) const {
    constexpr size_t kP = kPanel<T>, kN = kLanes<T>;
    size_t begin = static_cast<size_t>(lo) / kN, end = static_cast<size_t>(hi) / kN + 1;  // vectors
    const T* rows = x.row(group.row);
    const ptrdiff_t ld = static_cast<ptrdiff_t>(ldg);
    WithRows(group.count, [&](auto count) HWY_ATTR {
      const auto half = [&](size_t vector) HWY_ATTR {
        const T* column = table + vector / 2 * block.depth * kP + vector % 2 * kN;
        GemmHalfPanel<count>(block.depth, rows, x.stride, column, g + vector * kN, ld);
      };
      if (begin % 2 == 1) half(begin++);
      if (end % 2 == 1) half(--end);
      for (size_t p = begin / 2; p < end / 2; ++p)
        GemmPanel<count>(block.depth, rows, x.stride, table + p * block.depth * kP,
                         static_cast<const T*>(nullptr), 0, g + p * kP, ld);
    });
  }
};

// O[i] += sum_j P[i,j]·A[row(offset)] on one block of keys.
template <class T>
struct ValueBlock {
  Strip<T> strip;
  const T* table = nullptr;  // (panels of dv, table rows, panel)
  T* w = nullptr;            // (a group's rows, ldw): probabilities by table row
  size_t ldw = 0;

  void build(const ValueTerm& term, bool unit_steps, int64_t head, size_t value_dim,
             const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    strip.build(term.map, unit_steps, block, arena);
    const Matrix m = Matrix::of(term.table, 0, term.table.shape[0] == 1 ? 0 : head);
    T* packed = arena.take<T>((value_dim + kP - 1) / kP * kP * strip.count);
    PackRows<T>(m, strip.lo, strip.count, value_dim, packed);
    table = packed;
    ldw = strip.count + kP;
    w = arena.take<T>(kMaxRows * ldw);
  }

  // O[r, :] += W[r, :]·A for the rows of a group; o rows are ldo apart; sums[r] = sum of p[r, :].
  void add(const KeyBlock<T>& block, const RowGroup& group, const T* p, size_t ldp, const T* sums,
           size_t value_panels, T* o, size_t ldo) const {
    constexpr size_t kP = kPanel<T>;
    const size_t last_row = group.row + group.count - 1;
    const size_t lo =
        static_cast<size_t>(strip.rows[StripStart(block, last_row, group.panel_begin)]);
    const size_t hi =
        static_cast<size_t>(strip.rows[StripStart(block, group.row, group.panel_end) - 1]);
    for (size_t r = 0; r < group.count; ++r) {
      T* row = w + r * ldw;
      if (lo == hi) {  // far from the diagonal
        row[lo] = sums[r];
        continue;
      }
      std::fill(row + lo, row + hi + 1, T(0));
      UnshearRow(p + r * ldp, strip.rows + StripStart(block, group.row + r, group.panel_begin),
                 group.panel_end - group.panel_begin, strip.unit_steps, row);
    }
    WithRows(group.count, [&](auto count) HWY_ATTR {
      for (size_t c = 0; c < value_panels; ++c)
        GemmPanel<count>(hi + 1 - lo, w + lo, static_cast<ptrdiff_t>(ldw),
                         table + (c * strip.count + lo) * kP, o + c * kP,
                         static_cast<ptrdiff_t>(ldo), o + c * kP, static_cast<ptrdiff_t>(ldo));
    });
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_POSITION_INL_H_
