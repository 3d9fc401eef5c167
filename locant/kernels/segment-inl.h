// Segment terms: each query row has two numbers, one for keys of its own segment and one for all
// others, and every score takes one of them.

#if defined(LOCANT_KERNELS_SEGMENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_SEGMENT_INL_H_
#undef LOCANT_KERNELS_SEGMENT_INL_H_
#else
#define LOCANT_KERNELS_SEGMENT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/kernels/shear-inl.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// All segment terms of a work item: sum of scale·<q_i + plus, table[seg(i) != seg(j)]>.
//
// What a row's score with the block's first key takes is added to all its scores of the block, by
// the softmax. So panels whose keys are all of that key's segment need no pass; text has long runs
// of one segment.
template <class T>
class SegmentBlock {
 public:
  bool active() const { return same_ != nullptr; }

  // Room for an item of `rows` rows of `heads` heads, and blocks of up to `keys` keys.
  void begin(const ConstView& q_segments, const Sequence& sequence, int64_t row_begin, size_t heads,
             size_t rows, size_t keys, Arena& arena) {
    rows_ = rows;
    q_ids_ = arena.take<Index<T>>(rows);
    k_ids_ = arena.take<Index<T>>(keys);
    uniform_ = arena.take<uint8_t>(keys / kPanel<T>);
    same_ = arena.take<T>(heads * rows);
    other_ = arena.take<T>(heads * rows);
    std::fill_n(same_, heads * rows, T(0));
    std::fill_n(other_, heads * rows, T(0));
    copy_ids(q_segments, sequence.batch, sequence.q_begin + row_begin, rows, q_ids_);
  }

  // Adds one term's two products for the rows x of the item's head h.
  void multiply(const SegmentTerm& term, int64_t head, size_t h, const Rows<T>& x, size_t depth,
                Arena& arena) {
    const Arena::Scope scope(arena);
    const Matrix m = Matrix::of(term.table, 0, term.table.shape[0] == 1 ? 0 : head);
    const Rows<T> table = RowsOf<T>(m, 0, 2, depth, static_cast<T>(term.scale), Matrix{}, arena);
    for (size_t r = 0; r < rows_; ++r) {
      const T* row = x.row(r);
      same_[h * rows_ + r] += Dot(row, table.at, depth);
      other_[h * rows_ + r] += Dot(row, table.at + table.stride, depth);
    }
  }

  // The segments of a block's keys, and which panels are all of the first key's.
  void read_keys(const ConstView& k_segments, int64_t batch, int64_t first,
                 const KeyBlock<T>& block) {
    constexpr size_t kP = kPanel<T>;
    copy_ids(k_segments, batch, first, block.keys, k_ids_);
    std::fill(k_ids_ + block.keys, k_ids_ + block.panels * kP, k_ids_[0]);
    for (size_t p = 0; p < block.panels; ++p)
      uniform_[p] = std::all_of(k_ids_ + p * kP, k_ids_ + (p + 1) * kP,
                                [&](Index<T> id) { return id == k_ids_[0]; });
  }

  // Adds the terms to one group of rows of the item's head h: in the rows' offsets, and in S where
  // a panel has keys of another segment than the block's first.
  void add(size_t h, const RowGroup& group, PanelStart<T>* starts, T* offset, T* s,
           size_t lds) const {
    constexpr size_t kP = kPanel<T>;
    T if_same[kMaxRows], if_other[kMaxRows];  // beyond what the offset has; one of them is 0
    const Index<T>* ids = q_ids_ + group.row;
    for (size_t r = 0; r < group.count; ++r) {
      const size_t at = h * rows_ + group.row + r;
      const T first = ids[r] == k_ids_[0] ? same_[at] : other_[at];
      if_same[r] = same_[at] - first;
      if_other[r] = other_[at] - first;
      offset[r] += first;
    }
    for (size_t p = group.panel_begin; p < group.panel_end; ++p, ++starts, s += kP) {
      if (uniform_[p]) continue;
      for (size_t r = 0; r < group.count; ++r)
        add_panel(k_ids_ + p * kP, ids[r], if_same[r], if_other[r],
                  starts->at + static_cast<ptrdiff_t>(r) * starts->stride, s + r * lds);
      *starts = {s, static_cast<ptrdiff_t>(lds)};
    }
  }

  // The transpose of multiply() and add() for one row x, whose dS on keys [begin, end) is ds:
  //   dX += a·T[0] + b·T[1],   dT[0] += a·x,   dT[1] += b·x
  // with a and b the sums of ds over the keys of the row's own segment and over the others.
  //   table (2, depth);  dx (depth);  dt (2, dt_stride);  plus (depth): gets what dX gets, or null
  void add_gradient(size_t row, const T* ds, size_t begin, size_t end, const T* x,
                    const Rows<T>& table, size_t depth, T* dx, T* dt, size_t dt_stride,
                    T* plus) const {
    T sums[2] = {0, 0};
    for (size_t j = begin; j < end; ++j) sums[k_ids_[j] == q_ids_[row] ? 0 : 1] += ds[j];
    for (size_t n = 0; n < 2; ++n) {
      if (sums[n] == T(0)) continue;  // nothing visible there; x may be NaN
      for (size_t c = 0; c < depth; ++c) {
        const T part = sums[n] * table.row(n)[c];
        dx[c] += part;
        dt[n * dt_stride + c] += sums[n] * x[c];
        if (plus != nullptr) plus[c] += part;
      }
    }
  }

 private:
  // s[j] = start[j] + (keys[j] == id ? if_same : if_other) on one panel.
  static HWY_INLINE void add_panel(const Index<T>* keys, Index<T> id, T if_same, T if_other,
                                   const T* start, T* s) {
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<Index<T>> di;
    constexpr size_t kN = kLanes<T>;
    const Vec<T> same = hn::Set(d, if_same), other = hn::Set(d, if_other);
    Unroll<2>([&](auto half) HWY_ATTR {
      constexpr size_t kOffset = half * kN;
      const auto equal = hn::Eq(hn::LoadU(di, keys + kOffset), hn::Set(di, id));
      const Vec<T> x = hn::IfThenElse(hn::RebindMask(d, equal), same, other);
      hn::StoreU(hn::Add(x, hn::LoadU(d, start + kOffset)), d, s + kOffset);
    });
  }

  // Ids have 32-bit values, so they fit lanes of either type.
  static void copy_ids(const ConstView& ids, int64_t batch, int64_t first, size_t count,
                       Index<T>* out) {
    const int64_t* in = ids.at<int64_t>(ids.shape[0] == 1 ? 0 : batch, first);
    for (size_t n = 0; n < count; ++n)
      out[n] = static_cast<Index<T>>(in[static_cast<int64_t>(n) * ids.strides[1]]);
  }

  size_t rows_ = 0;
  Index<T>* q_ids_ = nullptr;             // (rows)
  Index<T>* k_ids_ = nullptr;             // (keys of the block, filled up to whole panels)
  uint8_t* uniform_ = nullptr;            // (panels): all keys of the first key's segment
  T *same_ = nullptr, *other_ = nullptr;  // (heads, rows): the two products
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SEGMENT_INL_H_
