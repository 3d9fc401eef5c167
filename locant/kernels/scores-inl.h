// The scores of query rows against a block of keys, for the forward and the backward pass.

#if defined(LOCANT_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_SCORES_INL_H_
#undef LOCANT_KERNELS_SCORES_INL_H_
#else
#define LOCANT_KERNELS_SCORES_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/attention_call.h"
#include "locant/kernels/bias-inl.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/mask-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/position-inl.h"
#include "locant/kernels/segment-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Rows of q + plus, all heads of the range. The scale c is not here but in the packed keys.
template <class T>
std::vector<Rows<T>> QueryRows(const AttentionCall& call, const Sequence& sequence,
                               const QueryRange& range, const ConstView& plus, Arena& arena) {
  std::vector<Rows<T>> out;
  for (int64_t head = range.head_begin; head < range.head_end; ++head) {
    Matrix added{};
    if (plus)
      added = {
          plus.at<std::byte>() + head * plus.strides[0] * static_cast<int64_t>(size_of(plus.dtype)),
          plus.dtype, 0, plus.strides[1]};
    out.push_back(RowsOf<T>(Matrix::of(call.q, sequence.batch, head),
                            sequence.q_begin + range.row_begin, range.rows(),
                            static_cast<size_t>(call.problem->head_dim), T(1), added, arena));
  }
  return out;
}

// S = c·<q_i + u, k_j> + terms for a group of at most kMaxRows rows against the block's keys, and
// -inf where nothing is visible. Steps from the outside in: rows, keys, head, group.
template <class T>
class ScoreBlock {
 public:
  ScoreBlock(const AttentionCall& call, const Sequence& sequence, Arena& arena)
      : call_(call),
        problem_(*call.problem),
        terms_(*call.terms),
        sequence_(sequence),
        arena_(arena) {}

  const KeyBlock<T>& block() const { return block_; }
  const PanelStart<T>& start(size_t panel_of_group) const { return starts_[panel_of_group]; }
  const std::vector<ProjectionBlock<T>>& projections() const { return projections_; }
  const SegmentBlock<T>& segments() const { return segments_; }
  Rows<T> q(size_t h, size_t row) const { return {q_[h].row(row), q_[h].stride}; }
  // Rows lie apart, and another core may have written them: the first product would wait for each.
  void ask_for_rows(size_t h, size_t row) const {
    const size_t count = std::min(kMaxRows, range_.rows() - row);
    PrefetchRows(q_[h].row(row), q_[h].stride, count, block_.depth);
  }
  // q + plus of a query-side projection.
  const Rows<T>& x(size_t projection, size_t h) const { return x_[projection][h]; }

  // The queries, and the largest number of keys that a block of theirs will have.
  void begin_rows(const QueryRange& range, size_t max_keys) {
    range_ = range;
    const size_t max_panels = (max_keys + kP - 1) / kP;
    zeros_ = arena_.take<T>(kP);
    starts_ = arena_.take<PanelStart<T>>(max_panels);
    std::fill_n(zeros_, kP, T(0));
    q_ = QueryRows<T>(call_, sequence_, range, terms_.query_plus, arena_);
    x_.clear();
    for (const Projection& term : terms_.projections)
      x_.push_back(term.side == Side::query
                       ? QueryRows<T>(call_, sequence_, range, term.plus, arena_)
                       : std::vector<Rows<T>>(range.heads()));
    if (!terms_.segments.empty()) begin_segments(max_panels * kP);
  }

  // k: the block's keys as packed columns, times c; null if only terms are wanted.
  void begin_keys(int64_t key_begin, size_t keys, const T* k) {
    key_begin_ = key_begin;
    block_.keys = keys;
    block_.panels = (keys + kP - 1) / kP;
    block_.depth = static_cast<size_t>(problem_.head_dim);
    block_.k = k;
    block_.k_scale = static_cast<T>(terms_.scale);
    block_.zeros = zeros_;
    block_.rows = range_.rows();
    block_.first_offset =
        (sequence_.k_start + key_begin) - (sequence_.q_start + range_.row_end - 1);
    if (segments_.active())
      segments_.read_keys(problem_.k_segments, sequence_.batch, sequence_.k_begin + key_begin,
                          block_);
  }

  // Position terms of the range's head h on this block.
  void begin_head(size_t h) {
    const int64_t head = range_.head_begin + static_cast<int64_t>(h);
    h_ = h;
    bias_.build(terms_.biases, head, block_, arena_);
    projections_.resize(x_.size());
    for (size_t t = 0; t < x_.size(); ++t)
      projections_[t].build(terms_.projections[t], call_.table(t), call_.projection_unit_steps[t],
                            head, x_[t][h], block_, arena_);
  }

  // The group of rows [row, row + count): panels that any of them sees, none if panel_begin >=
  // panel_end. ranges[r]: visible keys of each row, counted from the block's first.
  RowGroup group(size_t row, size_t count, KeyRange* ranges) const {
    RowGroup group{row, count, block_.panels, 0};
    const int64_t keys = static_cast<int64_t>(block_.keys);
    for (size_t r = 0; r < count; ++r) {
      ranges[r] = problem_.visible(sequence_, range_.row_begin + static_cast<int64_t>(row + r));
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
    return group;
  }

  // The terms: in the panels' starting values, in S itself, and in the rows' offsets, which belong
  // to all scores of a row and are not yet added.   s (rows of the group, lds);  offset (kMaxRows)
  void add_terms(const RowGroup& group, T* s, size_t lds, T* offset) {
    const size_t panels = group.panel_end - group.panel_begin;
    for (size_t p = 0; p < panels; ++p) starts_[p] = {zeros_, 0};
    std::fill_n(offset, kMaxRows, T(0));
    if (bias_.strip != nullptr) bias_.start(block_, group, starts_, offset);
    s += group.panel_begin * kP;
    for (ProjectionBlock<T>& term : projections_) term.add(block_, group, starts_, offset, s, lds);
    if (segments_.active()) segments_.add(h_, group, starts_, offset, s, lds);
  }

  // S = starting values + QKᵀ: a term that needs no pass of its own costs nothing.
  void add_products(const RowGroup& group, T* s, size_t lds) {
    const size_t panels = group.panel_end - group.panel_begin;
    const Rows<T> rows = q(h_, group.row);
    s += group.panel_begin * kP;
    WithRows(group.count, [&](auto count) HWY_ATTR {
      for (size_t p = 0; p < panels; ++p, s += kP)
        GemmPanel<count>(block_.depth, rows.at, rows.stride,
                         block_.k + (group.panel_begin + p) * block_.depth * kP, starts_[p].at,
                         starts_[p].stride, s, static_cast<ptrdiff_t>(lds));
    });
  }

  // -inf for what causal, window, prefix, length and the explicit mask hide.
  void hide(const RowGroup& group, const KeyRange* ranges, T* s, size_t lds, T* offset) const {
    const size_t begin = group.panel_begin * kP, end = group.panel_end * kP;
    // A NaN or infinity of the row's offset goes to its scores before they are hidden: it is added
    // to -inf otherwise, and what is hidden becomes NaN.
    for (size_t r = 0; r < group.count; ++r) {
      if (offset[r] < std::numeric_limits<T>::infinity()) continue;
      for (size_t j = begin; j < end; ++j) s[r * lds + j] += offset[r];
      offset[r] = 0;
    }
    for (size_t r = 0; r < group.count; ++r) HideOutside(s + r * lds, begin, end, ranges[r]);
    if (!problem_.mask) return;
    for (size_t r = 0; r < group.count; ++r)
      ApplyMask<T>(problem_.mask, sequence_.batch, range_.head_begin + static_cast<int64_t>(h_),
                   sequence_.q_begin + range_.row_begin + static_cast<int64_t>(group.row + r),
                   sequence_.k_begin + key_begin_, begin, std::min(end, block_.keys), s + r * lds);
  }

 private:
  static constexpr size_t kP = kPanel<T>;

  // Both products of every row with the segment tables; the select follows per block of keys.
  void begin_segments(size_t max_keys) {
    segments_.begin(problem_.q_segments, sequence_, range_.row_begin, range_.heads(), range_.rows(),
                    max_keys, arena_);
    for (const SegmentTerm& term : terms_.segments) {
      const std::vector<Rows<T>> x = QueryRows<T>(call_, sequence_, range_, term.plus, arena_);
      for (size_t h = 0; h < range_.heads(); ++h)
        segments_.multiply(term, range_.head_begin + static_cast<int64_t>(h), h, x[h],
                           static_cast<size_t>(problem_.head_dim), arena_);
    }
  }

  const AttentionCall& call_;
  const Problem& problem_;
  const Terms& terms_;
  const Sequence& sequence_;
  Arena& arena_;

  QueryRange range_;
  std::vector<Rows<T>> q_;               // per head: rows of q + u
  std::vector<std::vector<Rows<T>>> x_;  // per projection and head: rows of q + plus
  int64_t key_begin_ = 0;
  KeyBlock<T> block_;
  size_t h_ = 0;
  T* zeros_ = nullptr;               // (panel)
  PanelStart<T>* starts_ = nullptr;  // (panels of a block)
  BiasBlock<T> bias_;                // all biases of the head
  std::vector<ProjectionBlock<T>> projections_;
  SegmentBlock<T> segments_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SCORES_INL_H_
