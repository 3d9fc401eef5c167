#include "locant/attention/fused.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "locant/attention/counters.h"
#include "locant/attention/work.h"
#include "locant/core/executor.h"
#include "locant/kernels/forward.h"

namespace locant::inline v0 {
namespace {

// Keys per tile: K and V of a block fit the second-level cache, and so do the key-side products
// (keys × table rows) of a term that has them.
constexpr int64_t kKeyBlock = 512;
constexpr int64_t kKeyBlockWithKeySide = 256;
constexpr int64_t kMaxRows = 768;  // query rows per item: enough to repay packing keys
constexpr int64_t kMinRows = 96;
constexpr int64_t kFewRows = 16;  // with so few rows, keys are split over items instead
constexpr int64_t kKeysPerSplit = 2048;
// A larger table would not stay in a cache until its items read it.
constexpr int64_t kMostPacked = int64_t{8} << 20;  // bytes

int64_t key_block(const Terms& terms, const Tiling& tiling) {
  if (tiling.keys > 0) return tiling.keys;
  for (const Projection& term : terms.projections)
    if (term.side == Side::key) return kKeyBlockWithKeySide;
  return kKeyBlock;
}

// How one sequence is cut into work items. It depends on the sequence and the number of heads
// alone, so results are the same bits for any number of threads and any company in the batch.
struct Cut {
  int64_t rows = 1;   // query rows per item
  int64_t heads = 1;  // query heads per item, of one key/value head
  int64_t keys = 1;   // keys per item
};

Cut cut(const Problem& p, const Sequence& s, const Tiling& tiling, int64_t key_block) {
  Cut out;
  const int64_t wanted = std::clamp(ceil_div(p.heads * s.q_len, kItemsWanted), kMinRows, kMaxRows);
  int64_t pieces = std::max<int64_t>(1, (s.q_len + wanted / 3) / wanted);
  // Five items on two threads take as long as six.
  if (pieces > 1 && p.heads * pieces % 2 == 1) ++pieces;
  out.rows = tiling.rows > 0 ? tiling.rows : std::max<int64_t>(1, ceil_div(s.q_len, pieces));
  // Short queries share the packing of their key/value head.
  out.heads = std::clamp<int64_t>(kMinRows / std::max<int64_t>(1, s.q_len), 1, p.group());
  const bool split = s.q_len <= kFewRows && s.k_len >= 2 * kKeysPerSplit;
  out.keys = split ? round_up(kKeysPerSplit, key_block) : std::max<int64_t>(1, s.k_len);
  return out;
}

// All items of a call; those whose keys are split stand together, in order of their keys.
struct Plan {
  std::vector<ForwardItem> items;
  std::vector<std::vector<std::byte>> partials;
};

void add_items(const Problem& p, int64_t index, const Cut& cut, size_t element, Plan& plan) {
  const Sequence& s = p.sequences[index];
  for (int64_t kv = 0; kv < p.kv_heads; ++kv)
    for (int64_t head = kv * p.group(); head < (kv + 1) * p.group(); head += cut.heads)
      // Last rows first: under a causal mask they take longest.
      for (int64_t end = s.q_len; end > 0; end = (end - 1) / cut.rows * cut.rows)
        for (int64_t key = 0; key == 0 || key < s.k_len; key += cut.keys) {
          ForwardItem item;
          item.sequence = index;
          item.queries.head_begin = head;
          item.queries.head_end = std::min(head + cut.heads, (kv + 1) * p.group());
          item.queries.row_begin = (end - 1) / cut.rows * cut.rows;
          item.queries.row_end = end;
          item.key_begin = key;
          item.key_end = std::min(key + cut.keys, s.k_len);
          if (cut.keys < s.k_len) {
            const int64_t rows =
                (item.queries.head_end - item.queries.head_begin) * (end - item.queries.row_begin);
            plan.partials.emplace_back(static_cast<size_t>(rows * (p.value_dim + 2)) * element);
            item.partial = plan.partials.back().data();
          }
          plan.items.push_back(item);
        }
}

// Rows of `map` from the offset of the last query and the first key to that of the first query and
// the last key, with keys in whole panels, as the kernels read them.
int64_t rows_between(const RowMap& map, int64_t first_offset, int64_t rows, int64_t keys) {
  const int64_t last_offset = first_offset + rows + round_up(keys, kWidestPanel) - 2;
  return map.row(last_offset) - map.row(first_offset) + 1;
}

// Whether the items would pack so many rows of a query-side table, one after another.
bool items_pack(int64_t wanted, const RowMap& map, const ForwardCall& call, const Plan& plan) {
  int64_t sum = 0;
  for (const ForwardItem& item : plan.items) {
    const Sequence& s = call.problem->sequences[item.sequence];
    const auto rows = static_cast<int64_t>(item.queries.rows());
    for (int64_t key = item.key_begin; key < item.key_end; key += call.key_block)
      sum += static_cast<int64_t>(item.queries.heads()) *
             rows_between(map, s.k_start + key - (s.q_start + item.queries.row_end - 1), rows,
                          std::min(call.key_block, item.key_end - key));
    if (sum >= wanted) return true;
  }
  return false;
}

// Packs the query-side tables that many items share.
void pack_tables(ForwardCall& call, const Plan& plan, bool wide) {
  const Problem& p = *call.problem;
  const auto& terms = call.terms->projections;
  const auto element = static_cast<int64_t>(wide ? sizeof(double) : sizeof(float));
  std::vector<std::pair<size_t, int64_t>> work;  // projection, head
  call.tables.resize(terms.size());
  for (size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].side != Side::query) continue;
    const RowMap& map = terms[t].map;
    int64_t first = std::numeric_limits<int64_t>::max(), end = 0;
    for (const Sequence& s : p.sequences) {
      if (s.q_len == 0 || s.k_len == 0) continue;
      const int64_t offset = s.k_start - (s.q_start + s.q_len - 1);
      first = std::min<int64_t>(first, map.row(offset));
      end = std::max(end, map.row(offset) + rows_between(map, offset, s.q_len, s.k_len));
    }
    if (first >= end) continue;
    PackedTable& table = call.tables[t];
    const int64_t heads = terms[t].table.shape[0];
    table.first = first;
    table.count = end - first;
    table.depth = p.head_dim;
    const int64_t elements = round_up(table.count, kWidestPanel) * table.depth;
    if (heads * elements * element > kMostPacked ||
        !items_pack(2 * heads * table.count, map, call, plan))
      continue;
    table.per_head = heads == 1 ? 0 : elements;
    table.data = Block(static_cast<size_t>(heads * elements * element));
    for (int64_t head = 0; head < heads; ++head) work.emplace_back(t, head);
  }
  const auto pack = wide ? pack_table_f64 : pack_table_f32;
  executor()->parallel_for(static_cast<int64_t>(work.size()), [&](int64_t index, int) {
    const auto [t, head] = work[static_cast<size_t>(index)];
    pack(call, t, head);
  });
}

// Joins the partial results of `count` items over the same rows: weights exp(m_i - max m).
template <class T>
void merge(const ForwardCall& call, const ForwardItem* items, int64_t count) {
  constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();
  const ForwardItem& item = items[0];
  const Sequence& s = call.problem->sequences[item.sequence];
  const int64_t dv = call.problem->value_dim, rows = item.queries.row_end - item.queries.row_begin;
  std::vector<T> o(dv);
  for (int64_t head = item.queries.head_begin; head < item.queries.head_end; ++head)
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = ((head - item.queries.head_begin) * rows + r) * (dv + 2);
      T m = kMinusInfinity, l = 0;
      for (int64_t i = 0; i < count; ++i)
        m = std::max(m, static_cast<const T*>(items[i].partial)[at + dv]);
      std::fill(o.begin(), o.end(), T(0));
      for (int64_t i = 0; i < count; ++i) {
        const T* part = static_cast<const T*>(items[i].partial) + at;
        if (part[dv + 1] == T(0)) continue;  // nothing visible there
        const T weight = std::exp(part[dv] - (m == kMinusInfinity ? T(0) : m));
        for (int64_t c = 0; c < dv; ++c) o[c] += weight * part[c];
        l += weight * part[dv + 1];
      }
      const int64_t row = s.q_begin + item.queries.row_begin + r;
      for (int64_t c = 0; c < dv; ++c)
        set_element(call.out, l == T(0) ? T(0) : o[c] / l, s.batch, head, row, c);
      if (call.lse)
        *call.lse.at<T>(s.batch, head, row) = l == T(0) ? kMinusInfinity : m + std::log(l);
    }
}

// Rows of out that belong to no sequence are padding: zeros, lse -inf.
template <class T>
void clear_padding(const Problem& p, const View& out, const View& lse) {
  UsedRows rows(p.batch, p.q_len);
  for (const Sequence& s : p.sequences) rows.add(s.batch, s.q_begin, s.q_len);
  rows.clear_others(out);
  if (!lse) return;
  rows.for_others([&](int64_t b, int64_t i) {
    for (int64_t h = 0; h < p.heads; ++h) *lse.at<T>(b, h, i) = -std::numeric_limits<T>::infinity();
  });
}

}  // namespace

void fused_forward(const Problem& problem, const ConstView& q, const ConstView& k,
                   const ConstView& v, const Terms& terms, const Tiling& wanted, const View& out,
                   const View& lse) {
  const Tiling tiling = within_lengths(problem, wanted);
  ForwardCall call{attention_call(problem, terms, q, k, v, key_block(terms, tiling)), out, lse};
  const bool wide = q.dtype == DType::f64;
  if (wide) {
    clear_padding<double>(problem, out, lse);
  } else {
    clear_padding<float>(problem, out, lse);
  }

  Plan plan;
  for (size_t index = 0; index < problem.sequences.size(); ++index)
    add_items(problem, static_cast<int64_t>(index),
              cut(problem, problem.sequences[index], tiling, call.key_block),
              wide ? sizeof(double) : sizeof(float), plan);

  pack_tables(call, plan, wide);
  const auto run = wide ? run_forward_f64 : run_forward_f32;
  std::atomic<int64_t> tiles{0};
  executor()->parallel_for(static_cast<int64_t>(plan.items.size()), [&](int64_t index, int) {
    tiles.fetch_add(run(call, plan.items[index]), std::memory_order_relaxed);
  });

  for (size_t first = 0; first < plan.items.size();) {
    size_t last = first + 1;
    if (plan.items[first].partial != nullptr) {
      while (last < plan.items.size() && plan.items[last].key_begin > 0) ++last;
      const auto count = static_cast<int64_t>(last - first);
      wide ? merge<double>(call, &plan.items[first], count)
           : merge<float>(call, &plan.items[first], count);
    }
    first = last;
  }
  count_fused(1, tiles.load());
}

}  // namespace locant::inline v0
