#include "locant/attention/fused_backward.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "locant/attention/counters.h"
#include "locant/attention/work.h"
#include "locant/core/executor.h"
#include "locant/core/memory.h"
#include "locant/kernels/backward.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kKeyBlock = 128;      // K, V, their gradients and two tiles fit the second level
constexpr int64_t kTileRows = 96;       // the depth of the products dSᵀ·Q and Pᵀ·dO
constexpr int64_t kKeysPerItem = 1024;  // at least: every further item costs a copy of dq

// Keys per item of one sequence. It depends on the sequence and the number of heads alone, so
// results are the same bits for any number of threads and any company in the batch.
int64_t keys_per_item(const Problem& p, const Sequence& s, int64_t key_block) {
  const int64_t wanted = std::max<int64_t>(1, kItemsWanted / p.kv_heads);
  const int64_t items = std::clamp<int64_t>(s.k_len / kKeysPerItem, 1, wanted);
  return round_up(ceil_div(std::max<int64_t>(1, s.k_len), items), key_block);
}

template <class T>
class Backward {
 public:
  Backward(const Problem& problem, const Terms& terms, const ForwardResult& f,
           const ConstView& dout, const Tiling& wanted, const View& dq, const View& dk,
           const View& dv)
      : problem_(problem), terms_(terms), dq_(dq) {
    const Tiling tiling = within_lengths(problem, wanted);
    static_cast<AttentionCall&>(call_) =
        attention_call(problem, terms, f.q, f.k, f.v, tiling.keys > 0 ? tiling.keys : kKeyBlock);
    call_.out = f.out;
    call_.lse = f.lse;
    call_.dout = dout;
    call_.dk = dk;
    call_.dv = dv;
    call_.tile_rows = tiling.rows > 0 ? tiling.rows : kTileRows;
    call_.padded_depth = static_cast<size_t>(round_up(problem.head_dim, kWidestPanel));
    call_.padded_value = static_cast<size_t>(round_up(problem.value_dim, kWidestPanel));
  }

  TermGradients run() {
    clear_padding();
    for (size_t index = 0; index < problem_.sequences.size(); ++index)
      add_items(static_cast<int64_t>(index));
    const auto run_item = std::is_same_v<T, double> ? run_backward_f64 : run_backward_f32;
    std::atomic<int64_t> tiles{0};
    executor()->parallel_for(static_cast<int64_t>(items_.size()), [&](int64_t index, int) {
      for (const Piece& piece : pieces_[index]) std::fill_n(piece.data, piece.size, T(0));
      BackwardItem& item = items_[index];
      if (item.bias != nullptr)
        std::fill_n(item.bias, static_cast<int64_t>(item.queries.heads()) * item.offsets, 0.0);
      tiles.fetch_add(run_item(call_, item), std::memory_order_relaxed);
    });
    count_fused_backward(1, tiles.load());
    sum_queries();
    return sum_terms();
  }

 private:
  struct Piece {
    T* data;
    int64_t size;
  };

  // Rows that belong to no item: those of no sequence, and queries without keys.
  void clear_padding() const {
    UsedRows queries(problem_.batch, problem_.q_len), keys(problem_.batch, problem_.k_len);
    for (const Sequence& s : problem_.sequences) {
      if (s.k_len > 0) queries.add(s.batch, s.q_begin, s.q_len);
      keys.add(s.batch, s.k_begin, s.k_len);
    }
    queries.clear_others(dq_);
    keys.clear_others(call_.dk);
    keys.clear_others(call_.dv);
  }

  template <class U>
  U* allocate(int64_t n) {
    sums_.emplace_back(static_cast<size_t>(n) * sizeof(U));
    return reinterpret_cast<U*>(sums_.back().data());
  }

  T* take(int64_t n) {
    T* data = allocate<T>(n);
    pieces_.back().push_back({data, n});
    return data;
  }

  void add_items(int64_t index) {
    const Sequence& s = problem_.sequences[index];
    const int64_t step = keys_per_item(problem_, s, call_.key_block);
    for (int64_t kv = 0; kv < problem_.kv_heads; ++kv)
      for (int64_t key = 0; key < s.k_len; key += step) {
        BackwardItem item;
        item.sequence = index;
        item.key_begin = key;
        item.key_end = std::min(key + step, s.k_len);
        item.queries = seeing(s, item.key_begin, item.key_end);
        item.queries.head_begin = kv * problem_.group();
        item.queries.head_end = (kv + 1) * problem_.group();
        pieces_.emplace_back();
        add_sums(s, item);
        items_.push_back(std::move(item));
      }
  }

  // The rows, first to last, that see any of the keys; perhaps none.
  QueryRange seeing(const Sequence& s, int64_t key_begin, int64_t key_end) const {
    QueryRange out;
    out.row_begin = s.q_len;
    for (int64_t i = 0; i < s.q_len; ++i) {
      const KeyRange range = problem_.visible(s, i);
      if (range.begin >= range.end || range.begin >= key_end || range.end <= key_begin) continue;
      out.row_begin = std::min(out.row_begin, i);
      out.row_end = i + 1;
    }
    out.row_begin = std::min(out.row_begin, out.row_end);
    return out;
  }

  void add_sums(const Sequence& s, BackwardItem& item) {
    const auto heads = static_cast<int64_t>(item.queries.heads());
    const auto depth = static_cast<int64_t>(call_.padded_depth);
    const auto value = static_cast<int64_t>(call_.padded_value);
    item.dq = take(heads * static_cast<int64_t>(item.queries.rows()) * depth);
    if (terms_.query_plus) item.query_plus = take(heads * depth);
    // Offsets of the item's pairs; kernels look at whole panels of keys.
    item.first_offset = s.k_start + item.key_begin - (s.q_start + item.queries.row_end - 1);
    const int64_t last =
        s.k_start + item.key_end - 1 + kWidestPanel - (s.q_start + item.queries.row_begin);
    item.offsets = last + 1 - item.first_offset;
    if (!terms_.biases.empty()) item.bias = allocate<double>(heads * item.offsets);
    const auto part = [&](const ConstView& table, int64_t first, int64_t rows, int64_t width) {
      const bool per_head = table.shape[0] != 1;
      return TablePart{first, rows, per_head, take((per_head ? heads : 1) * rows * width)};
    };
    const auto mapped = [&](const ConstView& table, const RowMap& map, int64_t width) {
      const int64_t first = map.row(item.first_offset);
      return part(table, first, map.row(last) + 1 - first, width);
    };
    for (const Projection& term : terms_.projections) {
      item.projections.push_back(mapped(term.table, term.map, depth));
      item.projection_plus.push_back(term.plus ? take(heads * depth) : nullptr);
    }
    for (const ValueTerm& term : terms_.values)
      item.values.push_back(mapped(term.table, term.map, value));
    for (const SegmentTerm& term : terms_.segments) {
      item.segments.push_back(part(term.table, 0, 2, depth));
      item.segment_plus.push_back(term.plus ? take(heads * depth) : nullptr);
    }
  }

  // dq = c·(sum over the items of a head, in order of their keys)
  void sum_queries() {
    struct Job {
      size_t first, last;  // items of one sequence and key/value head
      int64_t head;
    };
    std::vector<Job> jobs;
    for (size_t first = 0, last; first < items_.size(); first = last) {
      last = first + 1;
      while (last < items_.size() && items_[last].sequence == items_[first].sequence &&
             items_[last].queries.head_begin == items_[first].queries.head_begin)
        ++last;
      for (size_t h = 0; h < items_[first].queries.heads(); ++h)
        jobs.push_back({first, last, static_cast<int64_t>(h)});
    }
    executor()->parallel_for(static_cast<int64_t>(jobs.size()), [&](int64_t index, int) {
      const Job& job = jobs[index];
      const Sequence& s = problem_.sequences[items_[job.first].sequence];
      std::vector<T> sum(call_.padded_depth);
      for (int64_t i = 0; i < s.q_len; ++i) {
        std::fill(sum.begin(), sum.end(), T(0));
        for (size_t n = job.first; n < job.last; ++n) {
          const QueryRange& queries = items_[n].queries;
          if (i < queries.row_begin || i >= queries.row_end) continue;
          const int64_t at =
              job.head * static_cast<int64_t>(queries.rows()) + i - queries.row_begin;
          const T* from =
              static_cast<const T*>(items_[n].dq) + static_cast<size_t>(at) * call_.padded_depth;
          for (size_t c = 0; c < sum.size(); ++c) sum[c] += from[c];
        }
        store(sum, s.batch, items_[job.first].queries.head_begin + job.head, s.q_begin + i);
      }
    });
  }

  void store(const std::vector<T>& sum, int64_t batch, int64_t head, int64_t row) const {
    const T scale = static_cast<T>(terms_.scale);
    if (dq_.dtype == dtype_of<T>()) {
      T* to = dq_.at<T>(batch, head, row);
      for (int64_t c = 0; c < problem_.head_dim; ++c) to[c * dq_.strides[3]] = scale * sum[c];
    } else {
      for (int64_t c = 0; c < problem_.head_dim; ++c)
        set_element(dq_, static_cast<double>(scale * sum[c]), batch, head, row, c);
    }
  }

  // The gradient of a table: scale·(sum of the items' parts), in the order of the items.
  Tensor sum_tables(const ConstView& table, double scale, int64_t padded,
                    const TablePart& (*part_of)(const BackwardItem&, size_t), size_t t) const {
    Tensor out(dtype_of<T>(), {table.shape[0], table.shape[1], table.shape[2]});
    const View to = out.view();
    const T factor = static_cast<T>(scale);
    executor()->parallel_for(table.shape[0], [&](int64_t head, int) {
      for (const BackwardItem& item : items_) {
        const TablePart& part = part_of(item, t);
        int64_t h = 0;
        if (part.per_head) {
          if (head < item.queries.head_begin || head >= item.queries.head_end) continue;
          h = head - item.queries.head_begin;
        }
        const T* from = static_cast<const T*>(part.data) + h * part.rows * padded;
        for (int64_t r = 0; r < part.rows; ++r) {
          T* row = to.at<T>(head, part.first_row + r);
          for (int64_t c = 0; c < table.shape[2]; ++c) row[c] += factor * from[r * padded + c];
        }
      }
    });
    return out;
  }

  // The same for what is added to x: (heads, d), times c.
  Tensor sum_plus(const ConstView& plus, void* (*plus_of)(const BackwardItem&, size_t),
                  size_t t) const {
    if (!plus) return {};
    Tensor out(dtype_of<T>(), {problem_.heads, problem_.head_dim});
    const View to = out.view();
    for (const BackwardItem& item : items_)
      for (int64_t h = item.queries.head_begin; h < item.queries.head_end; ++h) {
        const T* from = static_cast<const T*>(plus_of(item, t)) +
                        static_cast<size_t>(h - item.queries.head_begin) * call_.padded_depth;
        for (int64_t c = 0; c < problem_.head_dim; ++c)
          *to.at<T>(h, c) += static_cast<T>(terms_.scale) * from[c];
      }
    return out;
  }

  BiasGradient sum_bias(const OffsetBias& bias) const {
    BiasGradient out;
    out.values.assign(static_cast<size_t>(problem_.heads * bias.count), 0);
    if (!bias.left_slope.empty()) out.left_slope.assign(problem_.heads, 0);
    if (!bias.right_slope.empty()) out.right_slope.assign(problem_.heads, 0);
    for (const BackwardItem& item : items_)
      for (int64_t head = item.queries.head_begin; head < item.queries.head_end; ++head) {
        const double* from = item.bias + (head - item.queries.head_begin) * item.offsets;
        for (int64_t e = 0; e < item.offsets; ++e) {
          const int64_t index = item.first_offset + e - bias.first;
          const int64_t inside = std::clamp<int64_t>(index, 0, bias.count - 1);
          out.values[head * bias.count + inside] += from[e];
          if (index < 0 && !out.left_slope.empty())
            out.left_slope[head] += from[e] * static_cast<double>(-index);
          if (index >= bias.count && !out.right_slope.empty())
            out.right_slope[head] += from[e] * static_cast<double>(index - bias.count + 1);
        }
      }
    return out;
  }

  TermGradients sum_terms() const {
    using Item = BackwardItem;
    const auto depth = static_cast<int64_t>(call_.padded_depth);
    const auto value = static_cast<int64_t>(call_.padded_value);
    TermGradients out;
    out.query_plus = sum_plus(
        terms_.query_plus, [](const Item& item, size_t) { return item.query_plus; }, 0);
    for (const OffsetBias& bias : terms_.biases) out.biases.push_back(sum_bias(bias));
    for (size_t t = 0; t < terms_.projections.size(); ++t) {
      const Projection& term = terms_.projections[t];
      out.projections.push_back(
          {sum_tables(
               term.table, term.scale, depth,
               [](const Item& item, size_t n) -> const TablePart& { return item.projections[n]; },
               t),
           sum_plus(
               term.plus, [](const Item& item, size_t n) { return item.projection_plus[n]; }, t)});
    }
    for (size_t t = 0; t < terms_.values.size(); ++t)
      out.values.push_back(
          {sum_tables(
               terms_.values[t].table, 1, value,
               [](const Item& item, size_t n) -> const TablePart& { return item.values[n]; }, t),
           {}});
    for (size_t t = 0; t < terms_.segments.size(); ++t) {
      const SegmentTerm& term = terms_.segments[t];
      out.segments.push_back(
          {sum_tables(
               term.table, term.scale, depth,
               [](const Item& item, size_t n) -> const TablePart& { return item.segments[n]; }, t),
           sum_plus(
               term.plus, [](const Item& item, size_t n) { return item.segment_plus[n]; }, t)});
    }
    return out;
  }

  const Problem& problem_;
  const Terms& terms_;
  BackwardCall call_;
  View dq_;
  std::vector<BackwardItem> items_;
  std::vector<std::vector<Piece>> pieces_;  // per item: what it clears before it starts
  std::vector<Block> sums_;
};

}  // namespace

TermGradients fused_backward(const Problem& problem, const Terms& terms,
                             const ForwardResult& forward, const ConstView& dout,
                             const Tiling& tiling, const View& dq, const View& dk, const View& dv) {
  if (forward.q.dtype == DType::f64)
    return Backward<double>(problem, terms, forward, dout, tiling, dq, dk, dv).run();
  return Backward<float>(problem, terms, forward, dout, tiling, dq, dk, dv).run();
}

}  // namespace locant::inline v0
