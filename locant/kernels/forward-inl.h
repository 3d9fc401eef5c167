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
#include "locant/kernels/forward.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/mask-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/kernels/softmax-inl.h"
#include "locant/kernels/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// One work item. Keys are walked in blocks; each block is packed once and meets all query rows of
// the item in groups of six, whose scores (6, keys) stay in the first-level cache:
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
        arena_(Arena::of_this_thread()) {}

  int64_t run() {
    const Arena::Scope scope(arena_);
    begin();
    const KeyRange keys = visible_keys();
    for (int64_t key = keys.begin / key_block_ * key_block_; key < keys.end; key += key_block_)
      run_block(std::max(key, item_.key_begin),
                std::min({key + key_block_, keys.end, item_.key_end}));
    end();
    return tiles_;
  }

 private:
  static constexpr size_t kP = kPanel<T>;
  static constexpr int64_t kThinRows = 4;
  static constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

  size_t heads() const { return static_cast<size_t>(item_.head_end - item_.head_begin); }
  size_t rows() const { return static_cast<size_t>(item_.row_end - item_.row_begin); }

  // Keys that any row of the item sees.
  KeyRange visible_keys() const {
    KeyRange all{item_.key_end, item_.key_begin};
    for (int64_t i = item_.row_begin; i < item_.row_end; ++i) {
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
    lds_ = (static_cast<size_t>(key_block_) / kP + 1) * kP;
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
    zeros_ = arena_.take<T>(kP);
    starts_ = arena_.take<PanelStart<T>>(lds_ / kP);
    std::fill_n(zeros_, kP, T(0));
    std::fill_n(o_, n * ldo_, T(0));
    std::fill_n(m_, n, kMinusInfinity);
    std::fill_n(l_, n, T(0));
    q_ = query_rows(terms_.query_plus);
    for (const Projection& term : terms_.projections)
      x_.push_back(term.side == Side::query ? query_rows(term.plus)
                                            : std::vector<Rows<T>>(heads()));
  }

  static bool in_place(const ConstView& view) {
    return view.dtype == dtype_of<T>() && (view.strides[3] == 1 || view.shape[3] == 1);
  }

  // Rows of q + plus for every head of the item. The scale c is not here but in the packed keys.
  std::vector<Rows<T>> query_rows(const ConstView& plus) {
    std::vector<Rows<T>> out;
    for (int64_t head = item_.head_begin; head < item_.head_end; ++head) {
      Matrix added{};
      if (plus)
        added = {plus.at<std::byte>() +
                     head * plus.strides[0] * static_cast<int64_t>(size_of(plus.dtype)),
                 plus.dtype, 0, plus.strides[1]};
      out.push_back(RowsOf<T>(Matrix::of(call_.q, sequence_.batch, head),
                              sequence_.q_begin + item_.row_begin, rows(), depth_, T(1), added,
                              arena_));
    }
    return out;
  }

  void run_block(int64_t key_begin, int64_t key_end) {
    block_.keys = static_cast<size_t>(key_end - key_begin);
    block_.panels = (block_.keys + kP - 1) / kP;
    block_.depth = depth_;
    block_.k = k_;
    block_.k_scale = static_cast<T>(terms_.scale);
    block_.zeros = zeros_;
    block_.rows = rows();
    block_.first_offset = (sequence_.k_start + key_begin) - (sequence_.q_start + item_.row_end - 1);
    key_begin_ = key_begin;
    begin_keys();
    for (size_t h = 0; h < heads(); ++h) {
      const Arena::Scope scope(arena_);
      begin_head(h);
      for (size_t row = 0, n; row < rows(); row += n) {
        n = NextRows(rows() - row);
        run_group(h, row, n);
      }
    }
  }

  // Packs keys and values, or points to them where few queries do not repay packing.
  void begin_keys() {
    const int64_t kv_head = item_.head_begin / problem_.group();
    const int64_t first = sequence_.k_begin + key_begin_;
    const Matrix k = Matrix::of(call_.k, sequence_.batch, kv_head);
    const Matrix v = Matrix::of(call_.v, sequence_.batch, kv_head);
    if (thin_) {
      k_rows_ = {k.row<T>(first), k.row_stride};
      v_rows_ = {v.row<T>(first), v.row_stride};
      v_finite_ = false;  // nobody has looked
    } else {
      PackColumns<T>(k, first, block_.keys, depth_, block_.k_scale, k_);
      v_finite_ = PackRows<T>(v, first, block_.keys, static_cast<size_t>(problem_.value_dim), v_);
    }
  }

  // Position terms of one head on this block.
  void begin_head(size_t h) {
    const int64_t head = item_.head_begin + static_cast<int64_t>(h);
    bias_ = nullptr;
    if (!terms_.biases.empty()) {
      const size_t n = block_.offsets();
      bias_ = arena_.take<T>(n);
      for (size_t e = 0; e < n; ++e) {
        double sum = 0;
        for (const OffsetBias& bias : terms_.biases)
          sum += bias.at(head, block_.first_offset + static_cast<int64_t>(e));
        bias_[e] = static_cast<T>(sum);
      }
    }
    projection_blocks_.resize(x_.size());
    for (size_t t = 0; t < x_.size(); ++t)
      projection_blocks_[t].build(terms_.projections[t], call_.projection_unit_steps[t], head,
                                  x_[t][h], block_, arena_);
    value_blocks_.resize(terms_.values.size());
    for (size_t t = 0; t < terms_.values.size(); ++t)
      value_blocks_[t].build(terms_.values[t], call_.value_unit_steps[t], head,
                             static_cast<size_t>(problem_.value_dim), block_, arena_);
  }

  // One tile: `count` query rows of head h against the block's keys.
  void run_group(size_t h, size_t row, size_t count) {
    RowGroup group{row, count, block_.panels, 0};
    KeyRange ranges[kMaxRows];  // visible keys of each row, counted from the block's first
    const int64_t keys = static_cast<int64_t>(block_.keys);
    for (size_t r = 0; r < count; ++r) {
      ranges[r] = problem_.visible(sequence_, item_.row_begin + static_cast<int64_t>(row + r));
      ranges[r].begin = std::clamp<int64_t>(ranges[r].begin - key_begin_, 0, keys);
      ranges[r].end = std::clamp<int64_t>(ranges[r].end - key_begin_, 0, keys);
      if (ranges[r].begin >= ranges[r].end) {
        ranges[r] = {0, 0};
        continue;
      }
      group.panel_begin = std::min(group.panel_begin, static_cast<size_t>(ranges[r].begin) / kP);
      group.panel_end =
          std::max(group.panel_end, (static_cast<size_t>(ranges[r].end) + kP - 1) / kP);
    }
    if (group.panel_begin >= group.panel_end) return;
    ++tiles_;

    add_scores(h, group);
    const size_t begin = group.panel_begin * kP, end = group.panel_end * kP;
    for (size_t r = 0; r < count; ++r) HideOutside(s_ + r * lds_, begin, end, ranges[r]);
    if (problem_.mask) apply_mask(h, group);
    if (!v_finite_)
      for (size_t r = 0; r < count; ++r)
        for (size_t j = begin; j < end; ++j)
          live_[r * lds_ + j] = s_[r * lds_ + j] != kMinusInfinity;

    const size_t first = h * rows() + row;
    SoftmaxRows(count, s_, lds_, begin, end, m_ + first, l_ + first, step_);
    for (size_t r = 0; r < count; ++r)
      if (step_.alpha[r] != T(1))
        for (size_t c = 0; c < ldo_; ++c) o_[(first + r) * ldo_ + c] *= step_.alpha[r];
    add_values(group, o_ + first * ldo_);
  }

  // S = terms + QKᵀ. Terms are the starting values of the accumulators, so a bias costs nothing.
  void add_scores(size_t h, const RowGroup& group) {
    const size_t panels = group.panel_end - group.panel_begin;
    for (size_t p = 0; p < panels; ++p) starts_[p] = {zeros_, 0};
    if (bias_ != nullptr)
      for (size_t p = 0; p < panels; ++p)
        starts_[p] = {bias_ + StripStart(block_, group.row, group.panel_begin + p), -1};
    std::fill_n(step_.offset, kMaxRows, T(0));
    T* s = s_ + group.panel_begin * kP;
    for (ProjectionBlock<T>& term : projection_blocks_)
      term.add(block_, group, starts_, step_.offset, s, lds_);
    const T* q = q_[h].at + static_cast<ptrdiff_t>(group.row) * q_[h].stride;
    if (thin_) return add_thin_scores(q, q_[h].stride, group);
    WithRows(group.count, [&](auto count) HWY_ATTR {
      for (size_t p = 0; p < panels; ++p, s += kP)
        GemmPanel<count>(depth_, q, q_[h].stride, k_ + (group.panel_begin + p) * depth_ * kP,
                         starts_[p].at, starts_[p].stride, s, static_cast<ptrdiff_t>(lds_));
    });
  }

  void add_thin_scores(const T* q, ptrdiff_t stride, const RowGroup& group) {
    for (size_t r = 0; r < group.count; ++r)
      for (size_t p = group.panel_begin; p < group.panel_end; ++p) {
        const PanelStart<T>& start = starts_[p - group.panel_begin];
        ThinScores(q + static_cast<ptrdiff_t>(r) * stride, depth_, block_.k_scale,
                   k_rows_.at + static_cast<ptrdiff_t>(p * kP) * k_rows_.stride, k_rows_.stride,
                   std::min(kP, block_.keys - p * kP),
                   start.at + static_cast<ptrdiff_t>(r) * start.stride, s_ + r * lds_ + p * kP);
      }
  }

  void apply_mask(size_t h, const RowGroup& group) {
    const size_t begin = group.panel_begin * kP;
    const size_t end = std::min(group.panel_end * kP, block_.keys);
    for (size_t r = 0; r < group.count; ++r)
      ApplyMask<T>(problem_.mask, sequence_.batch, item_.head_begin + static_cast<int64_t>(h),
                   sequence_.q_begin + item_.row_begin + static_cast<int64_t>(group.row + r),
                   sequence_.k_begin + key_begin_, begin, end, s_ + r * lds_);
  }

  // O += P·V + value terms
  void add_values(const RowGroup& group, T* o) {
    const size_t begin = group.panel_begin * kP;
    const size_t keys = std::min(group.panel_end * kP, block_.keys) - begin;
    if (thin_) {
      for (size_t r = 0; r < group.count; ++r)
        ThinValues(s_ + r * lds_ + begin, live_ + r * lds_ + begin,
                   v_rows_.at + static_cast<ptrdiff_t>(begin) * v_rows_.stride, v_rows_.stride,
                   keys, static_cast<size_t>(problem_.value_dim), o + r * ldo_);
    } else if (v_finite_) {
      WithRows(group.count, [&](auto count) HWY_ATTR {
        for (size_t c = 0; c < value_panels_; ++c)
          GemmPanel<count>(keys, s_ + begin, static_cast<ptrdiff_t>(lds_),
                           v_ + (c * block_.keys + begin) * kP, o + c * kP,
                           static_cast<ptrdiff_t>(ldo_), o + c * kP, static_cast<ptrdiff_t>(ldo_));
      });
    } else {
      add_live_values(group, o);
    }
    for (const ValueBlock<T>& term : value_blocks_)
      term.add(block_, group, s_ + begin, lds_, step_.sum, value_panels_, o, ldo_);
  }

  // P·V pair by pair: with NaN or Inf among the values, 0·v of a hidden pair must not be added.
  void add_live_values(const RowGroup& group, T* o) {
    const size_t begin = group.panel_begin * kP;
    const size_t end = std::min(group.panel_end * kP, block_.keys);
    for (size_t r = 0; r < group.count; ++r)
      for (size_t j = begin; j < end; ++j) {
        if (!live_[r * lds_ + j]) continue;
        for (size_t c = 0; c < ldo_; ++c)
          o[r * ldo_ + c] += s_[r * lds_ + j] * v_[(c / kP * block_.keys + j) * kP + c % kP];
      }
  }

  void end() {
    const size_t dv = static_cast<size_t>(problem_.value_dim);
    for (size_t h = 0; h < heads(); ++h)
      for (size_t r = 0; r < rows(); ++r) {
        const size_t i = h * rows() + r;
        if (item_.partial != nullptr) {
          T* to = static_cast<T*>(item_.partial) + i * (dv + 2);
          std::copy_n(o_ + i * ldo_, dv, to);
          to[dv] = m_[i];
          to[dv + 1] = l_[i];
        } else {
          store(h, r, o_ + i * ldo_, m_[i], l_[i]);
        }
      }
  }

  // out = O / l, lse = m + log l
  void store(size_t h, size_t r, const T* o, T m, T l) {
    const int64_t head = item_.head_begin + static_cast<int64_t>(h);
    const int64_t row = sequence_.q_begin + item_.row_begin + static_cast<int64_t>(r);
    const T inverse = l == T(0) ? T(0) : T(1) / l;
    T* out = call_.out.at<T>(sequence_.batch, head, row);
    const int64_t stride = call_.out.strides[3];
    if (stride == 1) {
      for (int64_t c = 0; c < problem_.value_dim; ++c) out[c] = o[c] * inverse;
    } else {
      for (int64_t c = 0; c < problem_.value_dim; ++c) out[c * stride] = o[c] * inverse;
    }
    if (call_.lse)
      *call_.lse.at<T>(sequence_.batch, head, row) = l == T(0) ? kMinusInfinity : m + std::log(l);
  }

  const ForwardCall& call_;
  const ForwardItem& item_;
  const Problem& problem_;
  const Terms& terms_;
  const Sequence& sequence_;
  Arena& arena_;

  size_t depth_ = 0, value_panels_ = 0, ldo_ = 0, lds_ = 0;
  std::vector<Rows<T>> q_;               // per head: the item's rows of q + u
  std::vector<std::vector<Rows<T>>> x_;  // per projection and head: rows of q + plus
  T* o_ = nullptr;                       // (heads, rows, ldo)
  T *m_ = nullptr, *l_ = nullptr;        // (heads, rows): running maximum and sum
  T* s_ = nullptr;                       // (6, lds): scores, then probabilities
  uint8_t* live_ = nullptr;              // (6, lds): visible pairs, when values are not all finite
  T *k_ = nullptr, *v_ = nullptr;    // the block: (panels, d, panel), (value panels, keys, panel)
  T* zeros_ = nullptr;               // (panel)
  T* bias_ = nullptr;                // (offsets of the block): all biases of the head, or null
  PanelStart<T>* starts_ = nullptr;  // (panels of a block)
  SoftmaxStep<T> step_;
  KeyBlock<T> block_;
  int64_t key_block_ = 0;  // keys per block
  int64_t key_begin_ = 0;  // first key of this one
  bool v_finite_ = true;
  bool thin_ = false;        // few queries: keys and values are read in place
  Rows<T> k_rows_, v_rows_;  // the block's, if thin
  std::vector<ProjectionBlock<T>> projection_blocks_;
  std::vector<ValueBlock<T>> value_blocks_;
  int64_t tiles_ = 0;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_FORWARD_INL_H_
