// The fused backward on one work item, for one element type.

#if defined(LOCANT_KERNELS_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_BACKWARD_INL_H_
#undef LOCANT_KERNELS_BACKWARD_INL_H_
#else
#define LOCANT_KERNELS_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/backward.h"
#include "locant/kernels/dropout-inl.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/gradient-inl.h"
#include "locant/kernels/pack-inl.h"
#include "locant/kernels/scores-inl.h"
#include "locant/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// One work item. Its queries come in chunks, small enough that position terms are prepared for few
// offsets and large enough that packing the keys anew for each costs little:
//
//   for each chunk of rows:            pack Q, dO;  delta = rowsum(dO∘O)
//     for each block of keys:          pack K, V
//       for each head:                 strips, tables, key-side products
//         for each tile of rows:       S as in the forward;   P = exp(S - lse)
//                                      dP = dO·Vᵀ + terms;    dS = P∘(dP - delta)
//                                      dV += Pᵀ·dO;  dK += dSᵀ·Q;  dQ += dS·K;  terms
//
// Products are computed without the factor c, which dQ and dK get at the end.
template <class T>
class BackwardKernel {
 public:
  BackwardKernel(const BackwardCall& call, const BackwardItem& item)
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
    for (int64_t row = item_.queries.row_begin; row < item_.queries.row_end; row += kChunkRows) {
      const Arena::Scope chunk_scope(arena_);
      begin_chunk(row, std::min(row + kChunkRows, item_.queries.row_end));
      for (int64_t key = item_.key_begin; key < item_.key_end; key += call_.key_block)
        run_block(key, std::min(key + call_.key_block, item_.key_end));
    }
    store_keys();
    return tiles_;
  }

 private:
  static constexpr size_t kP = kPanel<T>;
  static constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();
  static constexpr int64_t kChunkRows = 768;

  // What a chunk has of one head. Packs are (panels, rows, panel) for one tile of rows after
  // another.
  struct HeadRows {
    Rows<T> dout;
    T* delta = nullptr;  // (rows)
    T *q = nullptr, *packed_dout = nullptr;
    std::vector<const T*> x;  // per projection: q + plus, or null (key side)
  };

  void begin() {
    depth_ = static_cast<size_t>(problem_.head_dim);
    value_ = static_cast<size_t>(problem_.value_dim);
    depth_panels_ = (depth_ + kP - 1) / kP;
    value_panels_ = (value_ + kP - 1) / kP;
    max_keys_ = (static_cast<size_t>(call_.key_block) + kP - 1) / kP * kP;
    tile_rows_ = static_cast<size_t>(call_.tile_rows);
    // An odd number of panels between rows keeps them out of each other's cache sets.
    lds_ = (max_keys_ / kP | 1) * kP;
    k_ = arena_.take<T>(max_keys_ * depth_);
    v_ = arena_.take<T>(max_keys_ * value_);
    k_rows_ = arena_.take<T>(max_keys_ * depth_panels_ * kP);
    const size_t item_keys = static_cast<size_t>(item_.key_end - item_.key_begin);
    all_dk_ = arena_.take<T>(item_keys * call_.padded_depth);
    all_dv_ = arena_.take<T>(item_keys * call_.padded_value);
    std::fill_n(all_dk_, item_keys * call_.padded_depth, T(0));
    std::fill_n(all_dv_, item_keys * call_.padded_value, T(0));
    p_ = arena_.take<T>(tile_rows_ * lds_);
    ds_ = arena_.take<T>(tile_rows_ * lds_);
    key_sums_ = arena_.take<T>(max_keys_);
    zeros_ = arena_.take<T>(kP);
    starts_ = arena_.take<PanelStart<T>>(max_keys_ / kP);
    std::fill_n(zeros_, kP, T(0));
    keep_scale_ = static_cast<T>(problem_.dropout.keep_scale());
    for (size_t t = 0; t < terms_.projections.size(); ++t)
      for (size_t h = 0; h < (item_.projections[t].per_head ? item_.queries.heads() : 1); ++h)
        tables_.push_back(table_rows(t, h));
  }

  // The rows of a projection's table that the item touches, as rows of panels, times s/c.
  TableRows<T> table_rows(size_t t, size_t h) {
    const Projection& term = terms_.projections[t];
    const TablePart& part = item_.projections[t];
    const Matrix m = Matrix::of(
        term.table, 0, part.per_head ? item_.queries.head_begin + static_cast<int64_t>(h) : 0);
    return {PackedRows(m, part.first_row, static_cast<size_t>(part.rows), depth_,
                       static_cast<T>(term.scale / terms_.scale), arena_),
            part.first_row, static_cast<size_t>(part.rows)};
  }

  void begin_chunk(int64_t row_begin, int64_t row_end) {
    chunk_ = item_.queries;
    chunk_.row_begin = row_begin;
    chunk_.row_end = row_end;
    scores_.begin_rows(chunk_, max_keys_);
    heads_.resize(chunk_.heads());
    for (size_t h = 0; h < heads_.size(); ++h) begin_head_rows(h);
  }

  void begin_head_rows(size_t h) {
    const int64_t head = chunk_.head_begin + static_cast<int64_t>(h);
    HeadRows& rows = heads_[h];
    rows.dout = rows_of(call_.dout, head);
    rows.packed_dout = packed(rows.dout, value_);
    rows.q = packed(scores_.q(h, 0), depth_);
    rows.x.clear();
    for (size_t t = 0; t < terms_.projections.size(); ++t) {
      const Projection& term = terms_.projections[t];
      const bool own = term.plus || terms_.query_plus;
      rows.x.push_back(term.side == Side::key ? nullptr
                       : own                  ? packed(scores_.x(t, h), depth_)
                                              : rows.q);
    }
    // delta_i = <dO_i, O_i>
    rows.delta = arena_.take<T>(chunk_.rows());
    const Arena::Scope scope(arena_);
    const Rows<T> out = rows_of(call_.out, head);
    for (size_t r = 0; r < chunk_.rows(); ++r)
      rows.delta[r] = Dot(rows.dout.row(r), out.row(r), value_);
  }

  // d(out) or out of a head, from the chunk's first row.
  Rows<T> rows_of(const ConstView& view, int64_t head) {
    return RowsOf<T>(Matrix::of(view, sequence_.batch, head), sequence_.q_begin + chunk_.row_begin,
                     chunk_.rows(), value_, T(1), Matrix{}, arena_);
  }

  // The chunk's rows as tiles.
  T* packed(const Rows<T>& rows, size_t width) {
    const size_t padded = (width + kP - 1) / kP * kP;
    T* out = arena_.take<T>(chunk_.rows() * padded);
    for (size_t row = 0, n; row < chunk_.rows(); row += n) {
      n = std::min(tile_rows_, chunk_.rows() - row);
      pack_finite(AsMatrix(rows), static_cast<int64_t>(row), n, width, out + row * padded);
    }
    return out;
  }

  void run_block(int64_t key_begin, int64_t key_end) {
    key_begin_ = key_begin;
    keys_ = static_cast<size_t>(key_end - key_begin);
    if (!chunk_sees_block()) return;
    const size_t first = static_cast<size_t>(key_begin - item_.key_begin);
    dk_ = all_dk_ + first * call_.padded_depth;
    dv_ = all_dv_ + first * call_.padded_value;
    pack_keys();
    scores_.begin_keys(key_begin, keys_, k_);
    for (size_t h = 0; h < chunk_.heads(); ++h) {
      const Arena::Scope scope(arena_);
      run_head(h);
    }
  }

  bool chunk_sees_block() const {
    for (int64_t i = chunk_.row_begin; i < chunk_.row_end; ++i) {
      const KeyRange range = problem_.visible(sequence_, i);
      if (range.begin < key_begin_ + static_cast<int64_t>(keys_) && range.end > key_begin_ &&
          range.begin < range.end)
        return true;
    }
    return false;
  }

  void pack_keys() {
    const int64_t kv_head = item_.queries.head_begin / problem_.group();
    const int64_t first = sequence_.k_begin + key_begin_;
    const Matrix k = Matrix::of(call_.k, sequence_.batch, kv_head);
    PackColumns<T>(k, first, keys_, depth_, static_cast<T>(terms_.scale), k_);
    PackColumns<T>(Matrix::of(call_.v, sequence_.batch, kv_head), first, keys_, value_, T(1), v_);
    pack_finite(k, first, keys_, depth_, k_rows_);
  }

  // A NaN or infinity in a row of K or Q makes all dS that it takes part in NaN; hidden pairs have
  // dS = 0, and the product with it must stay 0.
  static void pack_finite(const Matrix& m, int64_t first, size_t count, size_t width, T* out) {
    if (PackRows<T>(m, first, count, width, out)) return;
    const size_t n = (width + kP - 1) / kP * kP * count;
    for (size_t x = 0; x < n; ++x) out[x] = std::isfinite(out[x]) ? out[x] : T(0);
  }

  void run_head(size_t h) {
    scores_.begin_head(h);
    begin_gradients(h);
    for (size_t row = 0, n; row < chunk_.rows(); row += n) {
      n = std::min(tile_rows_, chunk_.rows() - row);
      run_tile(h, row, n);
    }
    finish_gradients(h);
  }

  TableTarget<T> target(const TablePart& part, size_t h, size_t width) const {
    T* data = static_cast<T*>(part.data);
    if (part.per_head) data += h * static_cast<size_t>(part.rows) * width;
    return {data, part.first_row, width};
  }
  T* plus_of(void* plus, size_t h) const {
    return plus == nullptr ? nullptr : static_cast<T*>(plus) + h * call_.padded_depth;
  }

  void begin_gradients(size_t h) {
    const int64_t head = chunk_.head_begin + static_cast<int64_t>(h);
    const KeyBlock<T>& block = scores_.block();
    query_sides_.clear();
    key_sides_.clear();
    const TableRows<T>* tables = tables_.data();
    for (size_t t = 0; t < terms_.projections.size(); ++t) {
      const TablePart& part = item_.projections[t];
      const TableTarget<T> where = target(part, h, call_.padded_depth);
      const Strip<T>& strip = scores_.projections()[t].strip;
      const TableRows<T>& table = tables[part.per_head ? h : 0];
      tables += part.per_head ? item_.queries.heads() : 1;
      if (terms_.projections[t].side == Side::query) {
        query_sides_.emplace_back().build(strip, table, depth_, where,
                                          plus_of(item_.projection_plus[t], h), tile_rows_,
                                          max_keys_, arena_);
      } else {
        key_sides_.emplace_back().build(strip, table, where, block, arena_);
      }
    }
    // dP of a value term is a query-side product of dO; its table's gradient comes from P.
    value_products_.resize(terms_.values.size());
    value_sides_.clear();
    for (size_t t = 0; t < terms_.values.size(); ++t) {
      const ValueTerm& term = terms_.values[t];
      KeyBlock<T> wide = block;
      wide.depth = value_;
      const Projection product{term.name, Side::query, 1, {}, term.table, term.map};
      value_products_[t].build(product, nullptr, call_.value_unit_steps[t], head, heads_[h].dout,
                               wide, arena_);
      value_sides_.emplace_back().build(value_products_[t].strip, {}, value_,
                                        target(item_.values[t], h, call_.padded_value), nullptr,
                                        tile_rows_, max_keys_, arena_);
    }
    if (item_.bias != nullptr) {
      bias_ = arena_.take<T>(block.offsets());
      std::fill_n(bias_, block.offsets(), T(0));
    }
    std::fill_n(key_sums_, keys_, T(0));
  }

  void finish_gradients(size_t h) {
    const KeyBlock<T>& block = scores_.block();
    for (const KeySideGradient<T>& side : key_sides_) side.finish(block, k_rows_, dk_);
    if (item_.bias != nullptr) {
      double* bias = item_.bias + static_cast<int64_t>(h) * item_.offsets;
      for (size_t e = 0; e < block.offsets(); ++e) {
        const int64_t at = block.first_offset + static_cast<int64_t>(e) - item_.first_offset;
        if (at < item_.offsets) bias[at] += static_cast<double>(bias_[e]);
      }
    }
    if (item_.query_plus != nullptr)  // du = sum over keys of (sum over rows of dS)·k
      AddProduct<Read::rows>(1, keys_, key_sums_, keys_, k_rows_, keys_ * kP, depth_panels_,
                             plus_of(item_.query_plus, h), call_.padded_depth);
  }

  // `count` rows of the chunk's head h against the block.
  void run_tile(size_t h, size_t row, size_t count) {
    RowGroup all{row, count, scores_.block().panels, 0};
    for (size_t r = 0, n; r < count; r += n) {
      n = NextRows(count - r);
      const RowGroup group = run_group(h, row + r, n, p_ + r * lds_, ds_ + r * lds_);
      all.panel_begin = std::min(all.panel_begin, group.panel_begin);
      all.panel_end = std::max(all.panel_end, group.panel_end);
    }
    if (all.panel_begin >= all.panel_end) return;
    ++tiles_;
    const T* q = heads_[h].q + row * depth_panels_ * kP;
    const T* dout = heads_[h].packed_dout + row * value_panels_ * kP;
    spoil_rows(h, all);

    const size_t begin = all.panel_begin * kP;
    const size_t keys = std::min(all.panel_end * kP, keys_) - begin;
    const int64_t first = chunk_.row_begin - item_.queries.row_begin + static_cast<int64_t>(row);
    T* dq = static_cast<T*>(item_.dq) +
            (h * item_.queries.rows() + static_cast<size_t>(first)) * call_.padded_depth;
    AddProduct<Read::columns>(keys, count, p_ + begin, lds_, dout, count * kP, value_panels_,
                              dv_ + begin * call_.padded_value, call_.padded_value);
    AddProduct<Read::columns>(keys, count, ds_ + begin, lds_, q, count * kP, depth_panels_,
                              dk_ + begin * call_.padded_depth, call_.padded_depth);
    AddProduct<Read::rows>(count, keys, ds_ + begin, lds_, k_rows_ + begin * kP, keys_ * kP,
                           depth_panels_, dq, call_.padded_depth);
    add_term_gradients(h, all, dq);
  }

  // P and dS of a few rows, zero outside the panels that they see; returns those panels.
  RowGroup run_group(size_t h, size_t row, size_t count, T* p, T* ds) {
    const KeyBlock<T>& block = scores_.block();
    KeyRange ranges[kMaxRows];
    RowGroup group = scores_.group(row, count, ranges);
    const size_t begin = group.panel_begin * kP, end = group.panel_end * kP;
    for (size_t r = 0; r < count; ++r)
      for (T* tile : {p + r * lds_, ds + r * lds_}) {
        std::fill(tile, tile + std::min(begin, block.panels * kP), T(0));
        std::fill(tile + end, tile + block.panels * kP, T(0));
      }
    if (begin >= end) return group;

    T offset[kMaxRows], value_offset[kMaxRows] = {};
    scores_.add_terms(group, p, lds_, offset);
    scores_.add_products(group, p, lds_);
    scores_.hide(group, ranges, p, lds_, offset);
    add_value_products(h, group, ds, value_offset);
    for (size_t r = 0; r < count; ++r) {
      const int64_t head = chunk_.head_begin + static_cast<int64_t>(h);
      const int64_t i = chunk_.row_begin + static_cast<int64_t>(row + r);
      const T lse = *call_.lse.at<T>(sequence_.batch, head, sequence_.q_begin + i);
      const T shift = lse == kMinusInfinity ? T(0) : lse - offset[r];
      T *s = p + r * lds_, *d = ds + r * lds_;
      if (problem_.dropout.p > 0) {
        drop_row(s, d, begin, end, shift, value_offset[r], heads_[h].delta[row + r], head, i);
      } else {
        ScoreGradientRow(s, d, begin, end, shift, value_offset[r] - heads_[h].delta[row + r]);
      }
    }
    return group;
  }

  // dP = dO·Vᵀ + shear(dO·Aᵀ), except what is the same for a whole row.
  void add_value_products(size_t h, const RowGroup& group, T* ds, T* offset) {
    const size_t panels = group.panel_end - group.panel_begin;
    for (size_t p = 0; p < panels; ++p) starts_[p] = {zeros_, 0};
    KeyBlock<T> block = scores_.block();
    block.depth = value_;
    block.zeros = zeros_;
    ds += group.panel_begin * kP;
    for (ProjectionBlock<T>& product : value_products_)
      product.add(block, group, starts_, offset, ds, lds_);
    const Rows<T> dout = heads_[h].dout;
    const T* x = dout.row(group.row);
    WithRows(group.count, [&](auto count) HWY_ATTR {
      for (size_t p = 0; p < panels; ++p, ds += kP)
        GemmPanel<count>(value_, x, dout.stride, v_ + (group.panel_begin + p) * value_ * kP,
                         starts_[p].at, starts_[p].stride, ds, static_cast<ptrdiff_t>(lds_));
    });
  }

  // With dropout:  P~ = P·keep/(1-p),  dS = P∘(dP·keep/(1-p) - delta).  s becomes P~.
  void drop_row(T* s, T* d, size_t begin, size_t end, T shift, T value_offset, T delta,
                int64_t head, int64_t i) const {
    const DropoutRow row = dropout_row(problem_.dropout.seed, item_.sequence, head, i);
    const int32_t threshold = problem_.dropout.threshold();
    for (size_t j = begin; j < end; ++j) d[j] = keep_scale_ * (d[j] + value_offset);
    DropRow(row, threshold, static_cast<uint32_t>(key_begin_ + static_cast<int64_t>(begin)),
            end - begin, d + begin);
    ScoreGradientRow(s, d, begin, end, shift, -delta);
    DropRow(row, threshold, static_cast<uint32_t>(key_begin_ + static_cast<int64_t>(begin)),
            end - begin, s + begin);
    for (size_t j = begin; j < end; ++j) s[j] *= keep_scale_;
  }

  // Rows whose dO is not finite were packed as zeros; all that they see in dV must become NaN.
  void spoil_rows(size_t h, const RowGroup& tile) {
    for (size_t r = 0; r < tile.count; ++r) {
      const T* x = heads_[h].dout.row(tile.row + r);
      // Then <dO, O> is not finite either.
      if (std::isfinite(heads_[h].delta[tile.row + r])) continue;
      if (std::all_of(x, x + value_, [](T value) { return std::isfinite(value); })) continue;
      for (size_t j = tile.panel_begin * kP; j < tile.panel_end * kP; ++j)
        if (p_[r * lds_ + j] != T(0)) p_[r * lds_ + j] = std::numeric_limits<T>::quiet_NaN();
    }
  }

  void add_term_gradients(size_t h, const RowGroup& rows, T* dq) {
    const KeyBlock<T>& block = scores_.block();
    const Tile<T> scores{rows, ds_, lds_}, probabilities{rows, p_, lds_};
    size_t query_side = 0;
    for (size_t t = 0; t < terms_.projections.size(); ++t)
      if (terms_.projections[t].side == Side::query)
        query_sides_[query_side++].add(block, scores,
                                       heads_[h].x[t] + rows.row * depth_panels_ * kP, dq);
    for (const KeySideGradient<T>& side : key_sides_) side.add(block, scores);
    for (QuerySideGradient<T>& side : value_sides_)
      side.add(block, probabilities, heads_[h].packed_dout + rows.row * value_panels_ * kP,
               nullptr);
    const size_t begin = rows.panel_begin * kP, end = rows.panel_end * kP;
    if (item_.bias != nullptr)
      for (size_t r = 0; r < rows.count; ++r)
        add_row(ds_ + r * lds_ + begin, end - begin,
                bias_ + StripStart(block, rows.row + r, rows.panel_begin));
    if (item_.query_plus != nullptr)
      for (size_t r = 0; r < rows.count; ++r)
        add_row(ds_ + r * lds_ + begin, std::min(end, keys_) - begin, key_sums_ + begin);
    for (size_t t = 0; t < terms_.segments.size(); ++t) add_segment_gradient(h, t, rows, dq);
  }

  // sum[x] += from[x]
  static HWY_INLINE void add_row(const T* from, size_t n, T* sum) {
    const hn::ScalableTag<T> d;
    constexpr size_t kN = kLanes<T>;
    size_t x = 0;
    for (; x + kN <= n; x += kN)
      hn::StoreU(hn::Add(hn::LoadU(d, sum + x), hn::LoadU(d, from + x)), d, sum + x);
    for (; x < n; ++x) sum[x] += from[x];
  }

  void add_segment_gradient(size_t h, size_t t, const RowGroup& rows, T* dq) {
    const SegmentTerm& term = terms_.segments[t];
    const int64_t head = chunk_.head_begin + static_cast<int64_t>(h);
    const Arena::Scope scope(arena_);
    const Matrix m = Matrix::of(term.table, 0, term.table.shape[0] == 1 ? 0 : head);
    const Rows<T> table =
        RowsOf<T>(m, 0, 2, depth_, static_cast<T>(term.scale / terms_.scale), Matrix{}, arena_);
    QueryRange one = chunk_;
    one.head_begin = head;
    one.head_end = head + 1;
    one.row_begin = chunk_.row_begin + static_cast<int64_t>(rows.row);
    one.row_end = one.row_begin + static_cast<int64_t>(rows.count);
    const Rows<T> x = QueryRows<T>(call_, sequence_, one, term.plus, arena_)[0];
    const TableTarget<T> where = target(item_.segments[t], h, call_.padded_depth);
    T* plus = plus_of(item_.segment_plus[t], h);
    for (size_t r = 0; r < rows.count; ++r)
      scores_.segments().add_gradient(rows.row + r, ds_ + r * lds_, rows.panel_begin * kP,
                                      std::min(rows.panel_end * kP, keys_), x.row(r), table, depth_,
                                      dq + r * call_.padded_depth, where.row(0), where.width, plus);
  }

  // dk = c·dK, dv = dV
  void store_keys() {
    const int64_t kv_head = item_.queries.head_begin / problem_.group();
    for (int64_t key = item_.key_begin; key < item_.key_end; ++key) {
      const size_t j = static_cast<size_t>(key - item_.key_begin);
      const int64_t row = sequence_.k_begin + key;
      StoreRow(all_dk_ + j * call_.padded_depth, depth_, static_cast<T>(terms_.scale),
               call_.dk.dtype, call_.dk.row(sequence_.batch, kv_head, row), call_.dk.strides[3]);
      StoreRow(all_dv_ + j * call_.padded_value, value_, T(1), call_.dv.dtype,
               call_.dv.row(sequence_.batch, kv_head, row), call_.dv.strides[3]);
    }
  }

  const BackwardCall& call_;
  const BackwardItem& item_;
  const Problem& problem_;
  const Terms& terms_;
  const Sequence& sequence_;
  Arena& arena_;
  ScoreBlock<T> scores_;

  size_t depth_ = 0, value_ = 0, depth_panels_ = 0, value_panels_ = 0;
  size_t max_keys_ = 0, tile_rows_ = 0, lds_ = 0;
  int64_t key_begin_ = 0;
  size_t keys_ = 0;
  QueryRange chunk_;
  std::vector<HeadRows> heads_;
  T keep_scale_ = 1;

  T *k_ = nullptr, *v_ = nullptr;  // columns of the block: (panels, d, panel), (panels, dv, panel)
  T* k_rows_ = nullptr;            // (depth panels, keys, panel)
  T *all_dk_ = nullptr, *all_dv_ = nullptr;  // (keys of the item, padded_depth | padded_value)
  T *dk_ = nullptr, *dv_ = nullptr;          // the block's part of them
  T *p_ = nullptr, *ds_ = nullptr;           // (tile rows, lds)
  T* key_sums_ = nullptr;                    // (keys): sums of dS over rows, for u
  T* bias_ = nullptr;                        // (offsets of the block): sums of dS
  T* zeros_ = nullptr;
  PanelStart<T>* starts_ = nullptr;
  std::vector<TableRows<T>> tables_;  // of the projections, for every head or for all together
  std::vector<QuerySideGradient<T>> query_sides_, value_sides_;
  std::vector<KeySideGradient<T>> key_sides_;
  std::vector<ProjectionBlock<T>> value_products_;
  int64_t tiles_ = 0;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_BACKWARD_INL_H_
