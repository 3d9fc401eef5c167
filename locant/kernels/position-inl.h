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
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/shear-inl.h"
#include "locant/terms/terms.h"

HWY_BEFORE_NAMESPACE();
namespace locant {
namespace HWY_NAMESPACE {

// A block of keys as the position terms see it.
template <class T>
struct KeyBlock {
  size_t keys = 0, panels = 0;    // keys, and panels that hold them
  size_t depth = 0;               // head dim
  const T* k = nullptr;           // (panels, depth, panel)
  size_t rows = 0;                // query rows of the item
  int64_t first_offset = 0;       // offset of e = 0
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
  int64_t lo = 0;                  // first table row of the block
  size_t count = 0;                // table rows of the block
  bool unit_steps = true;

  void build(const RowMap& map, bool has_unit_steps, const KeyBlock<T>& block, Arena& arena) {
    const size_t n = block.offsets();
    Index<T>* out = arena.take<Index<T>>(n + kPanel<T>);
    lo = map.row(block.first_offset);
    for (size_t e = 0; e < n; ++e)
      out[e] = static_cast<Index<T>>(map.row(block.first_offset + static_cast<int64_t>(e)) - lo);
    for (size_t e = n; e < n + kPanel<T>; ++e) out[e] = out[n - 1];
    rows = out;
    count = static_cast<size_t>(out[n - 1]) + 1;
    unit_steps = has_unit_steps;
  }

  Slope slope(size_t first, size_t last) const {
    return SlopeOf<T>(rows, first, last, unit_steps);
  }
};

// S[r, panel] = base[r, panel] + m·(one side's product read along the strip), for all rows of a
// group. base rows are base_stride apart: S itself, a strip of biases (stride -1) or zeros (0).
template <Side kSide, Slope kSlope, class T>
HWY_INLINE void AddSheared(const T* g, ptrdiff_t ldg, const Index<T>* strip, T m, size_t rows,
                           const T* base, ptrdiff_t base_stride, T* s, size_t lds) {
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  const Vec<T> multiplier = hn::Set(d, m);
  const Index<T> rise = std::min<Index<T>>(strip[kPanel<T> - 1] - (strip - (rows - 1))[0],
                                           static_cast<Index<T>>(kN - 1));
  for (size_t r = 0; r < rows; ++r) {
    Unroll<2>([&](auto half) HWY_ATTR {
      constexpr size_t kOffset = half * kN;
      const Index<T>* at = strip - r + kOffset;
      const Vec<T> x = kSide == Side::query ? ReadQuerySide<kSlope>(g, at)
                                            : ReadKeySide<kSlope>(g + kOffset, at, rise);
      hn::StoreU(hn::MulAdd(multiplier, x, hn::LoadU(d, base + kOffset)), d, s + kOffset);
    });
    g += ldg;
    base += base_stride;
    s += lds;
  }
}

template <Side kSide, class T>
HWY_INLINE void AddShearedPanel(Slope slope, const T* g, ptrdiff_t ldg, const Index<T>* strip, T m,
                                size_t rows, const T* base, ptrdiff_t base_stride, T* s,
                                size_t lds) {
  switch (slope) {
    case Slope::constant:
      return AddSheared<kSide, Slope::constant>(g, ldg, strip, m, rows, base, base_stride, s, lds);
    case Slope::linear:
      return AddSheared<kSide, Slope::linear>(g, ldg, strip, m, rows, base, base_stride, s, lds);
    case Slope::unit:
      return AddSheared<kSide, Slope::unit>(g, ldg, strip, m, rows, base, base_stride, s, lds);
    case Slope::any:
      return AddSheared<kSide, Slope::any>(g, ldg, strip, m, rows, base, base_stride, s, lds);
  }
}

// scale·<x, T[row(offset)]> on one block of keys.
template <class T>
struct ProjectionBlock {
  Side side = Side::query;
  Strip<T> strip;
  T multiplier = 1;
  const T* x = nullptr;  // query side: (rows of the item, depth), packed
  const T* table = nullptr;  // query side: (panels of table rows, depth, panel)
  T* g = nullptr;  // query side: (a group's rows, ldg); key side: (panels, table rows, panel)
  size_t ldg = 0;

  void build(const Projection& term, bool unit_steps, int64_t head, const T* packed_x, T scale,
             const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    side = term.side;
    x = packed_x;
    multiplier = scale;
    strip.build(term.map, unit_steps, block, arena);
    const Matrix m = Matrix::of(term.table, 0, term.table.shape[0] == 1 ? 0 : head);
    if (side == Side::query) {
      const size_t table_panels = (strip.count + kP - 1) / kP;
      T* packed = arena.take<T>(table_panels * kP * block.depth);
      PackColumns<T>(m, strip.lo, strip.count, block.depth, packed);
      table = packed;
      ldg = (table_panels + 1) * kP;  // reads of a full vector may begin at the last row
      g = arena.take<T>(kMaxRows * ldg);
    } else {
      build_key_side(m, block, arena);
    }
  }

  // G[p, row, :] = T[row]·K panel p, for the rows that the panel's offsets reach.
  void build_key_side(const Matrix& m, const KeyBlock<T>& block, Arena& arena) {
    constexpr size_t kP = kPanel<T>;
    // The last panel's reads may run on for a few rows that no lane selects.
    g = arena.take<T>((block.panels * strip.count + kLanes<T>) * kP);
    const T* rows = m.row<T>(strip.lo);
    ptrdiff_t stride = m.row_stride;
    if (m.dtype != dtype_of<T>() || m.col_stride != 1) {
      T* copy = arena.take<T>(strip.count * block.depth);
      CopyRows<T>(m, strip.lo, strip.count, block.depth, T(1), Matrix{}, copy);
      rows = copy;
      stride = static_cast<ptrdiff_t>(block.depth);
    }
    for (size_t p = 0; p < block.panels; ++p) {
      const size_t first = static_cast<size_t>(strip.rows[p * kP]);
      const size_t last = static_cast<size_t>(strip.rows[p * kP + kP - 1 + block.rows - 1]);
      const T* k = block.k + p * block.depth * kP;
      T* out = g + p * strip.count * kP;
      for (size_t row = first, n; row <= last; row += n) {
        n = NextRows(last + 1 - row);
        WithRows(n, [&](auto count) HWY_ATTR {
          GemmPanel<count>(block.depth, rows + static_cast<ptrdiff_t>(row) * stride, stride, k,
                           static_cast<const T*>(nullptr), 0, out + row * kP, kP);
        });
      }
    }
  }

  // S = base + this term, for one group of rows.
  void add(const KeyBlock<T>& block, const RowGroup& group, const T* base, ptrdiff_t base_stride,
           size_t base_step, T* s, size_t lds) const {
    constexpr size_t kP = kPanel<T>;
    const size_t last_row = group.row + group.count - 1;
    if (side == Side::query) {
      const size_t first = StripStart(block, last_row, group.panel_begin);
      const size_t last = StripStart(block, group.row, group.panel_end) - 1;
      multiply_query_side(block, group, strip.rows[first], strip.rows[last]);
    }
    for (size_t p = group.panel_begin; p < group.panel_end; ++p) {
      const size_t e = StripStart(block, group.row, p);
      const Slope slope = strip.slope(e - (group.count - 1), e + kP - 1);
      if (side == Side::query) {
        AddShearedPanel<Side::query>(slope, g, static_cast<ptrdiff_t>(ldg), strip.rows + e,
                                     multiplier, group.count, base, base_stride, s, lds);
      } else {
        AddShearedPanel<Side::key>(slope, g + p * strip.count * kP, 0, strip.rows + e, multiplier,
                                   group.count, base, base_stride, s, lds);
      }
      base += base_step;
      s += kP;
    }
  }

  // G[r, lo..hi] = X[r]·T[lo..hi]ᵀ for the rows of a group.
  void multiply_query_side(const KeyBlock<T>& block, const RowGroup& group, Index<T> lo,
                           Index<T> hi) const {
    constexpr size_t kP = kPanel<T>;
    const size_t begin = static_cast<size_t>(lo) / kP, end = static_cast<size_t>(hi) / kP + 1;
    WithRows(group.count, [&](auto count) HWY_ATTR {
      for (size_t p = begin; p < end; ++p)
        GemmPanel<count>(block.depth, x + group.row * block.depth,
                         static_cast<ptrdiff_t>(block.depth), table + p * block.depth * kP,
                         static_cast<const T*>(nullptr), 0, g + p * kP,
                         static_cast<ptrdiff_t>(ldg));
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

  // W[r, row] = sum of p over the keys whose offset has that row.
  void unshear_row(const T* p, const Index<T>* at, size_t panels, T* out) const {
    const hn::ScalableTag<T> d;
    constexpr size_t kP = kPanel<T>;
    constexpr size_t kN = kLanes<T>;
    Vec<T> run = hn::Zero(d);  // sum over neighbouring panels that share one table row
    Index<T> run_row = at[0];
    const auto flush = [&]() HWY_ATTR {
      out[run_row] += hn::GetLane(hn::SumOfLanes(d, run));
      run = hn::Zero(d);
    };
    for (size_t panel = 0; panel < panels; ++panel, at += kP, p += kP) {
      const Slope slope = SlopeOf<T>(at, 0, kP - 1, strip.unit_steps);
      if (slope == Slope::constant) {
        if (at[0] != run_row) flush();
        run_row = at[0];
        run = hn::Add(run, hn::Add(hn::LoadU(d, p), hn::LoadU(d, p + kN)));
      } else if (slope == Slope::linear) {
        T* to = out + at[0];
        hn::StoreU(hn::Add(hn::LoadU(d, to), hn::LoadU(d, p)), d, to);
        hn::StoreU(hn::Add(hn::LoadU(d, to + kN), hn::LoadU(d, p + kN)), d, to + kN);
      } else {
        for (size_t j = 0; j < kP; ++j) out[at[j]] += p[j];
      }
    }
    flush();
  }

  // O[r, :] += W[r, :]·A for the rows of a group; o rows are ldo apart.
  void add(const KeyBlock<T>& block, const RowGroup& group, const T* p, size_t ldp,
           size_t value_panels, T* o, size_t ldo) const {
    constexpr size_t kP = kPanel<T>;
    const size_t last_row = group.row + group.count - 1;
    const size_t lo =
        static_cast<size_t>(strip.rows[StripStart(block, last_row, group.panel_begin)]);
    const size_t hi =
        static_cast<size_t>(strip.rows[StripStart(block, group.row, group.panel_end) - 1]);
    for (size_t r = 0; r < group.count; ++r) {
      T* row = w + r * ldw;
      std::fill(row + lo, row + hi + 1, T(0));
      unshear_row(p + r * ldp, strip.rows + StripStart(block, group.row + r, group.panel_begin),
                  group.panel_end - group.panel_begin, row);
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
}  // namespace locant
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_POSITION_INL_H_
