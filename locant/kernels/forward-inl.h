// The fused forward on one work item, for one element type.

#if defined(LOCANT_KERNELS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_FORWARD_INL_H_
#undef LOCANT_KERNELS_FORWARD_INL_H_
#else
#define LOCANT_KERNELS_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/dropout-inl.h"
#include "locant/kernels/forward.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/kernels/prefetch.h"
#include "locant/kernels/scores-inl.h"
#include "locant/kernels/softmax-inl.h"
#include "locant/kernels/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// One work item. Keys are walked in blocks; each block is packed once and meets all query rows of
// the item in groups of kMaxRows, whose scores (rows, keys) stay in the first-level cache:
//
//   for each block of keys:   pack K, V;  for each head: strips, tables, key-side products
//     for each row group:     S = terms + QKᵀ;  mask;  softmax step;
//                             O = alpha·O + P·V + value terms
template <class T>
class ForwardKernel {
 public:
  ForwardKernel(const ForwardCall& call, const ForwardItem& item)
      : call_(call),
        item_(item),
        problem_(*call.problem),
        terms_(*call.terms),
        sequence_(problem_.sequences[item.sequence]),
        arena_(Arena::of_this_thread()),
        scores_(call, sequence_, arena_) {}

  int64_t run() {
    const Arena::Scope scope(arena_);
    begin();
    const KeyRange keys = visible_keys();
    // With nothing to see, the block that keys.begin falls into could have begun before the item's
    // own keys, and would have none.
    int64_t key = keys.begin < keys.end ? keys.begin / key_block_ * key_block_ : keys.end;
    for (; key < keys.end; key += key_block_)
      run_block(std::max(key, item_.key_begin),
                std::min({key + key_block_, keys.end, item_.key_end}),
                key + key_block_ >= keys.end);
    end();
    return tiles_;
  }

 private:
  static constexpr size_t kP = kPanel<T>;
  static constexpr int64_t kThinRows = 4;
  static constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

  size_t heads() const { return item_.queries.heads(); }
  size_t rows() const { return item_.queries.rows(); }

  // Keys that any row of the item sees.
  KeyRange visible_keys() const {
    KeyRange all{item_.key_end, item_.key_begin};
    for (int64_t i = item_.queries.row_begin; i < item_.queries.row_end; ++i) {
      const KeyRange range = problem_.visible(sequence_, i);
      if (range.begin == range.end) continue;
      all.begin = std::min(all.begin, range.begin);
      all.end = std::max(all.end, range.end);
    }
    all.begin = std::max(all.begin, item_.key_begin);
    all.end = std::min(all.end, item_.key_end);
    return all;
  }

  void begin() {
    thin_ = sequence_.q_len <= kThinRows && in_place(call_.k) && in_place(call_.v);
    for (const Projection& term : terms_.projections) thin_ = thin_ && term.side == Side::query;
    // Nothing of a thin block is kept but its scores, and every change of stream costs a pause.
    key_block_ = thin_ ? 4 * call_.key_block : call_.key_block;
    depth_ = static_cast<size_t>(problem_.head_dim);
    value_panels_ = (static_cast<size_t>(problem_.value_dim) + kP - 1) / kP;
    ldo_ = value_panels_ * kP;
    // An odd number of panels between rows of S keeps them out of each other's cache sets.
    lds_ = (static_cast<size_t>(key_block_) / kP | 1) * kP;
    const size_t n = heads() * rows();
    o_ = arena_.take<T>(n * ldo_);
    m_ = arena_.take<T>(n);
    l_ = arena_.take<T>(n);
    s_ = arena_.take<T>(kMaxRows * lds_);
    live_ = arena_.take<uint8_t>(kMaxRows * lds_);
    if (!thin_) {
      k_ = arena_.take<T>(lds_ * depth_);
      v_ = arena_.take<T>(lds_ * ldo_);
    }
    std::fill_n(o_, n * ldo_, T(0));
    std::fill_n(m_, n, kMinusInfinity);
    std::fill_n(l_, n, T(0));
    scores_.begin_rows(item_.queries, static_cast<size_t>(key_block_));
  }

  static bool in_place(const ConstView& view) {
    return IsLoadable<T>(view.dtype) && (view.strides[3] == 1 || view.shape[3] == 1);
  }

  void run_block(int64_t key_begin, int64_t key_end, bool last) {
    key_begin_ = key_begin;
    pack_keys(static_cast<size_t>(key_end - key_begin));
    scores_.begin_keys(key_begin, static_cast<size_t>(key_end - key_begin), k_);
    for (size_t h = 0; h < heads(); ++h) {
      const Arena::Scope scope(arena_);
      begin_head(h);
      for (size_t row = 0, n; row < rows(); row += n) {
        n = NextRows(rows() - row);
        if (row + n < rows()) scores_.ask_for_rows(h, row + n);
        if (last && item_.partial == nullptr) ask_to_write(h, row, n);
        run_group(h, row, n);
      }
    }
  }

  // Packs keys and values, or points to them where few queries do not repay packing.
  void pack_keys(size_t keys) {
    const int64_t kv_head = item_.queries.head_begin / problem_.group();
    const int64_t first = sequence_.k_begin + key_begin_;
    const Matrix k = Matrix::of(call_.k, sequence_.batch, kv_head);
    const Matrix v = Matrix::of(call_.v, sequence_.batch, kv_head);
    if (thin_) {
      k_stored_ = k;
      v_stored_ = v;
      v_finite_ = false;  // nobody has looked
    } else {
      PackColumns<T>(k, first, keys, depth_, static_cast<T>(terms_.scale), k_);
      v_finite_ = PackRows<T>(v, first, keys, static_cast<size_t>(problem_.value_dim), v_);
    }
  }

  // Position terms of one head on this block.
  void begin_head(size_t h) {
    scores_.begin_head(h);
    value_blocks_.resize(terms_.values.size());
    for (size_t t = 0; t < terms_.values.size(); ++t)
      value_blocks_[t].build(terms_.values[t], call_.value_unit_steps[t],
                             item_.queries.head_begin + static_cast<int64_t>(h),
                             static_cast<size_t>(problem_.value_dim), scores_.block(), arena_);
  }

  // One tile: `count` query rows of head h against the block's keys.
  void run_group(size_t h, size_t row, size_t count) {
    KeyRange ranges[kMaxRows];
    const RowGroup group = scores_.group(row, count, ranges);
    if (group.panel_begin >= group.panel_end) return;
    ++tiles_;

    scores_.add_terms(group, s_, lds_, step_.offset);
    if (thin_) {
      add_thin_scores(scores_.q(h, row), group);
    } else {
      scores_.add_products(group, s_, lds_);
    }
    scores_.hide(group, ranges, s_, lds_, step_.offset);
    const size_t begin = group.panel_begin * kP, end = group.panel_end * kP;
    if (!v_finite_)
      for (size_t r = 0; r < count; ++r)
        for (size_t j = begin; j < end; ++j)
          live_[r * lds_ + j] = s_[r * lds_ + j] != kMinusInfinity;

    const size_t first = h * rows() + row;
    SoftmaxRows(count, s_, lds_, begin, end, m_ + first, l_ + first, step_);
    for (size_t r = 0; r < count; ++r)
      if (step_.alpha[r] != T(1))
        for (size_t c = 0; c < ldo_; ++c) o_[(first + r) * ldo_ + c] *= step_.alpha[r];
    if (problem_.dropout.p > 0) drop(h, group);
    add_values(group, o_ + first * ldo_);
  }

  // Zeros for dropped probabilities. The others' factor 1/(1-p) comes at the end.
  void drop(size_t h, const RowGroup& group) {
    const size_t begin = group.panel_begin * kP, end = group.panel_end * kP;
    for (size_t r = 0; r < group.count; ++r) {
      const DropoutRow row = dropout_row(
          problem_.dropout.seed, item_.sequence, item_.queries.head_begin + static_cast<int64_t>(h),
          item_.queries.row_begin + static_cast<int64_t>(group.row + r));
      step_.sum[r] = DropRow(row, problem_.dropout.threshold(),
                             static_cast<uint32_t>(key_begin_ + static_cast<int64_t>(begin)),
                             end - begin, s_ + r * lds_ + begin);
    }
  }

  void add_thin_scores(const Rows<T>& q, const RowGroup& group) {
    WithLoadable<T>(k_stored_.dtype, [&](auto stored) HWY_ATTR {
      const auto* k = k_stored_.row<decltype(stored)>(sequence_.k_begin + key_begin_);
      const size_t begin = group.panel_begin * kP;
      const size_t keys = std::min(group.panel_end * kP, scores_.block().keys) - begin;
      for (size_t r = 0; r < group.count; ++r)
        ForEachOfStreams(keys, [&](size_t n) HWY_ATTR {
          const PanelStart<T>& start = scores_.start(n / kP);
          const size_t j = begin + n;
          s_[r * lds_ + j] =
              start.at[static_cast<ptrdiff_t>(r) * start.stride + static_cast<ptrdiff_t>(n % kP)] +
              scores_.block().k_scale *
                  Dot(q.row(r), k + static_cast<int64_t>(j) * k_stored_.row_stride, depth_);
        });
    });
  }

  // O += P·V + value terms
  void add_values(const RowGroup& group, T* o) {
    const size_t begin = group.panel_begin * kP;
    const size_t keys = std::min(group.panel_end * kP, scores_.block().keys) - begin;
    if (thin_) {
      WithLoadable<T>(v_stored_.dtype, [&](auto stored) HWY_ATTR {
        const int64_t first = sequence_.k_begin + key_begin_ + static_cast<int64_t>(begin);
        for (size_t r = 0; r < group.count; ++r)
          ThinValues(s_ + r * lds_ + begin, live_ + r * lds_ + begin,
                     v_stored_.row<decltype(stored)>(first), v_stored_.row_stride, keys,
                     static_cast<size_t>(problem_.value_dim), o + r * ldo_);
      });
    } else if (v_finite_) {
      WithRows(group.count, [&](auto count) HWY_ATTR {
        for (size_t c = 0; c < value_panels_; ++c)
          GemmPanel<count>(keys, s_ + begin, static_cast<ptrdiff_t>(lds_),
                           v_ + (c * scores_.block().keys + begin) * kP, o + c * kP,
                           static_cast<ptrdiff_t>(ldo_), o + c * kP, static_cast<ptrdiff_t>(ldo_));
      });
    } else {
      add_live_values(group, o);
    }
    for (const ValueBlock<T>& term : value_blocks_)
      term.add(scores_.block(), group, s_ + begin, lds_, step_.sum, value_panels_, o, ldo_);
  }

  // P·V pair by pair: with NaN or Inf among the values, 0·v of a hidden pair must not be added. The
  // sums run as in GemmPanel, so that what is hidden does not change a bit of what is not.
  void add_live_values(const RowGroup& group, T* o) {
    const hn::ScalableTag<T> d;
    constexpr size_t kN = kLanes<T>;
    const size_t begin = group.panel_begin * kP;
    const size_t end = std::min(group.panel_end * kP, scores_.block().keys);
    for (size_t r = 0; r < group.count; ++r)
      for (size_t j = begin; j < end; ++j) {
        if (!live_[r * lds_ + j]) continue;
        const Vec<T> p = hn::Set(d, s_[r * lds_ + j]);
        for (size_t c = 0; c < ldo_; c += kN) {
          const T* v = v_ + (c / kP * scores_.block().keys + j) * kP + c % kP;
          T* to = o + r * ldo_ + c;
          hn::StoreU(hn::MulAdd(p, hn::Load(d, v), hn::LoadU(d, to)), d, to);
        }
      }
  }

  void end() {
    const size_t dv = static_cast<size_t>(problem_.value_dim);
    for (size_t h = 0; h < heads(); ++h)
      for (size_t r = 0; r < rows(); ++r) {
        const size_t i = h * rows() + r;
        if (item_.partial != nullptr) {
          T* to = static_cast<T*>(item_.partial) + i * (dv + 2);
          const T keep_scale = static_cast<T>(problem_.dropout.keep_scale());
          for (size_t c = 0; c < dv; ++c) to[c] = keep_scale * o_[i * ldo_ + c];
          to[dv] = m_[i];
          to[dv + 1] = l_[i];
        } else {
          store(h, r, o_ + i * ldo_, m_[i], l_[i]);
        }
      }
  }

  // Rows of out, which store() will write, while the products run.
  void ask_to_write(size_t h, size_t row, size_t count) const {
    const int64_t head = item_.queries.head_begin + static_cast<int64_t>(h);
    const int64_t first = sequence_.q_begin + item_.queries.row_begin + static_cast<int64_t>(row);
    const size_t element = size_of(call_.out.dtype);
    PrefetchRowsToWrite(static_cast<const std::byte*>(call_.out.row(sequence_.batch, head, first)),
                        call_.out.strides[2] * static_cast<int64_t>(element), count,
                        static_cast<size_t>(problem_.value_dim) * element);
  }

  // out = O / l, lse = m + log l
  void store(size_t h, size_t r, const T* o, T m, T l) {
    const int64_t head = item_.queries.head_begin + static_cast<int64_t>(h);
    const int64_t row = sequence_.q_begin + item_.queries.row_begin + static_cast<int64_t>(r);
    const T inverse = l == T(0) ? T(0) : static_cast<T>(problem_.dropout.keep_scale()) / l;
    StoreRow(o, static_cast<size_t>(problem_.value_dim), inverse, call_.out.dtype,
             call_.out.row(sequence_.batch, head, row), call_.out.strides[3]);
    if (call_.lse)
      *call_.lse.at<T>(sequence_.batch, head, row) = l == T(0) ? kMinusInfinity : m + std::log(l);
  }

  const ForwardCall& call_;
  const ForwardItem& item_;
  const Problem& problem_;
  const Terms& terms_;
  const Sequence& sequence_;
  Arena& arena_;
  ScoreBlock<T> scores_;

  size_t depth_ = 0, value_panels_ = 0, ldo_ = 0, lds_ = 0;
  T* o_ = nullptr;                 // (heads, rows, ldo)
  T *m_ = nullptr, *l_ = nullptr;  // (heads, rows): running maximum and sum
  T* s_ = nullptr;                 // (kMaxRows, lds): scores, then probabilities
  uint8_t* live_ = nullptr;        // (kMaxRows, lds): visible pairs, when values are not all finite
  T *k_ = nullptr, *v_ = nullptr;  // the block: (panels, d, panel), (value panels, keys, panel)
  SoftmaxStep<T> step_;
  int64_t key_block_ = 0;  // keys per block
  int64_t key_begin_ = 0;  // first key of this one
  bool v_finite_ = true;
  bool thin_ = false;               // few queries: keys and values are read in place
  Matrix k_stored_{}, v_stored_{};  // where those are
  std::vector<ValueBlock<T>> value_blocks_;
  int64_t tiles_ = 0;
};

// One head of a query-side table, for all items.
template <class T>
void PackTable(const Projection& term, int64_t head, const PackedTable& to) {
  PackColumns<T>(Matrix::of(term.table, 0, head), to.first, static_cast<size_t>(to.count),
                 static_cast<size_t>(to.depth), static_cast<T>(term.scale),
                 const_cast<T*>(to.at<T>(head, to.first)));  // NOLINT: this is where it is filled
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_FORWARD_INL_H_
