// Plain loops in the inputs' own type (float32 for 16-bit inputs), one query row of all heads at a
// time: talking heads mix the heads of a row, and everything else only needs the row itself.
#include "locant/attention/materialized.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "locant/attention/counters.h"
#include "locant/core/executor.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "attend_materialized";

// The view's elements, row-major, as T; tables may have any floating type.
template <class T>
std::vector<T> dense(const ConstView& view) {
  if (!view) return {};
  std::vector<T> out;
  out.reserve(view.size());
  for (int64_t a = 0; a < view.shape[0]; ++a)
    for (int64_t b = 0; b < view.shape[1]; ++b)
      for (int64_t c = 0; c < view.shape[2]; ++c)
        out.push_back(static_cast<T>(element(view, a, b, c)));
  return out;
}

// The row (a, b, c, :) as contiguous numbers of T: itself if it is that, else converted to `copy`.
template <class T>
const T* row_of(const ConstView& view, int64_t a, int64_t b, int64_t c, std::vector<T>& copy) {
  if (view.dtype == dtype_of<T>() && view.strides[3] == 1) return view.at<T>(a, b, c);
  copy.resize(view.shape[3]);
  for (int64_t e = 0; e < view.shape[3]; ++e) copy[e] = static_cast<T>(element(view, a, b, c, e));
  return copy.data();
}

template <class T>
struct Table {
  std::vector<T> values;  // (heads | 1, rows, width)
  int64_t rows, width;
  bool per_head;

  explicit Table(const ConstView& view)
      : values(dense<T>(view)),
        rows(view.shape[1]),
        width(view.shape[2]),
        per_head(view.shape[0] > 1) {}

  const T* row(int64_t head, int64_t r) const {
    return &values[((per_head ? head : 0) * rows + r) * width];
  }
};

// What one worker needs for one query row; n = the sequence's keys.
template <class T>
struct Scratch {
  std::vector<T> x;              // (d)
  std::vector<T> row;            // (d) or (dv): a row of k or v, if it has to be converted
  std::vector<T> out;            // (dv)
  std::vector<int64_t> offsets;  // (n) pos(key) - pos(query)
  std::vector<uint8_t> visible;  // (H, n)
  std::vector<T> additive;       // (H, n) or empty
  std::vector<T> terms;          // (terms, H, n)
  std::vector<T> scores;         // (H, n), then probabilities
  std::vector<T> mixed;          // (H, n)
};

template <class T>
class Computation {
 public:
  Computation(const Problem& problem, const ConstView& q, const ConstView& k, const ConstView& v,
              const Terms& terms, const MaterializedOptions& extras, const View& out,
              const View& lse)
      : p_(problem),
        q_(q),
        k_(k),
        v_(v),
        terms_(terms),
        out_(out),
        lse_(lse),
        keep_(extras.keep),
        by_sequence_(extras.by_sequence) {
    query_plus_ = dense<T>(terms.query_plus);
    for (const Projection& projection : terms.projections) {
      tables_.emplace_back(projection.table);
      plus_.push_back(dense<T>(projection.plus));
    }
    for (const ValueTerm& value : terms.values) value_tables_.emplace_back(value.table);
    for (const SegmentTerm& segment : terms.segments) {
      segment_tables_.emplace_back(segment.table);
      segment_plus_.push_back(dense<T>(segment.plus));
    }
    talking_logits_ = dense<T>(extras.talking_logits);
    talking_probabilities_ = dense<T>(extras.talking_probabilities);
    count_ = 1 + static_cast<int64_t>(terms.biases.size() + terms.projections.size() +
                                      terms.segments.size());
  }

  Materialized run() {
    Materialized result;
    if (keep_) {
      const size_t pairs = p_.batch * p_.heads * p_.q_len * p_.k_len;
      result.probabilities.assign(pairs, 0);
      result.scores.emplace_back("content", std::vector<double>(pairs));
      for (const OffsetBias& bias : terms_.biases)
        result.scores.emplace_back(bias.name, std::vector<double>(pairs));
      for (const Projection& projection : terms_.projections)
        result.scores.emplace_back(projection.name, std::vector<double>(pairs));
      for (const SegmentTerm& segment : terms_.segments)
        result.scores.emplace_back(segment.name, std::vector<double>(pairs));
    }
    clear_outputs();
    if (by_sequence_ != nullptr) {
      first_ = by_sequence_->size();
      for (const Sequence& s : p_.sequences)
        by_sequence_->emplace_back(DType::f32,
                                   std::initializer_list<int64_t>{p_.heads, s.q_len, s.k_len});
    }

    std::vector<int64_t> ends;  // rows of the sequences up to and including each
    for (const Sequence& s : p_.sequences)
      ends.push_back((ends.empty() ? 0 : ends.back()) + s.q_len);
    const std::shared_ptr<Executor> threads = executor();
    std::vector<Scratch<T>> scratch(threads->concurrency());
    threads->parallel_for(ends.empty() ? 0 : ends.back(), [&](int64_t row, int worker) {
      const size_t index = std::upper_bound(ends.begin(), ends.end(), row) - ends.begin();
      const Sequence& s = p_.sequences[index];
      compute_row(static_cast<int64_t>(index), row - (ends[index] - s.q_len), scratch[worker],
                  result);
    });
    return result;
  }

 private:
  // Rows that belong to no sequence, and those that see nothing, stay like this.
  void clear_outputs() {
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.heads; ++h)
        for (int64_t i = 0; i < p_.q_len; ++i) {
          for (int64_t c = 0; c < p_.value_dim; ++c) set_element(out_, 0, b, h, i, c);
          if (lse_) *lse_.at<T>(b, h, i) = -std::numeric_limits<T>::infinity();
        }
  }

  void compute_row(int64_t index, int64_t i, Scratch<T>& w, Materialized& result) {
    const Sequence& s = p_.sequences[index];
    find_offsets(s, i, w);
    find_visible(s, i, w);
    // Mixing reads a pair in every head as soon as one of them sees it.
    std::vector<uint8_t> needed = w.visible;
    if (!talking_logits_.empty()) spread(s.k_len, needed);
    score(s, i, needed, w);

    const int64_t size = p_.heads * s.k_len;
    w.scores.assign(size, 0);
    for (int64_t t = 0; t < count_; ++t)
      for (int64_t n = 0; n < size; ++n) w.scores[n] += w.terms[t * size + n];
    if (!talking_logits_.empty()) mix(talking_logits_, s.k_len, w);
    for (int64_t h = 0; h < p_.heads; ++h) softmax(s, h, i, w);
    if (p_.dropout.p > 0) drop(index, i, w);

    std::vector<uint8_t> used = w.visible;
    if (!talking_probabilities_.empty()) {
      spread(s.k_len, used);
      mix(talking_probabilities_, s.k_len, w);
    }
    for (int64_t h = 0; h < p_.heads; ++h) sum_values(s, h, i, used, w);
    if (keep_) store(s, i, w, result);
    if (by_sequence_ != nullptr) store((*by_sequence_)[first_ + static_cast<size_t>(index)], i, w);
  }

  void find_offsets(const Sequence& s, int64_t i, Scratch<T>& w) const {
    const auto position = [&](const ConstView& ids, int64_t row, int64_t otherwise) {
      return ids ? *ids.at<int64_t>(ids.shape[0] == 1 ? 0 : s.batch, row) : otherwise;
    };
    const int64_t query = position(p_.q_positions, s.q_begin + i, s.q_start + i);
    w.offsets.resize(s.k_len);
    for (int64_t j = 0; j < s.k_len; ++j)
      w.offsets[j] = position(p_.k_positions, s.k_begin + j, s.k_start + j) - query;
  }

  void find_visible(const Sequence& s, int64_t i, Scratch<T>& w) const {
    const KeyRange range = p_.visible(s, i);
    const bool additive = p_.mask && p_.mask.dtype != DType::boolean;
    w.visible.assign(p_.heads * s.k_len, 0);
    w.additive.assign(additive ? p_.heads * s.k_len : 0, 0);
    for (int64_t h = 0; h < p_.heads; ++h)
      for (int64_t j = range.begin; j < range.end; ++j) {
        const int64_t n = h * s.k_len + j;
        w.visible[n] = 1;
        if (!p_.mask) continue;
        const double mask = mask_at(s.batch, h, s.q_begin + i, s.k_begin + j);
        w.visible[n] = additive ? mask != -std::numeric_limits<double>::infinity() : mask != 0;
        if (additive) w.additive[n] = static_cast<T>(mask);
      }
  }

  double mask_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const Extents& shape = p_.mask.shape;
    return element(p_.mask, shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i,
                   shape[3] == 1 ? 0 : j);
  }

  // A key marked in one head becomes marked in all.
  void spread(int64_t keys, std::vector<uint8_t>& marks) const {
    for (int64_t j = 0; j < keys; ++j) {
      bool any = false;
      for (int64_t h = 0; h < p_.heads; ++h) any = any || marks[h * keys + j];
      for (int64_t h = 0; h < p_.heads; ++h) marks[h * keys + j] = any;
    }
  }

  // scores[g] = sum_h W[g,h]·scores[h]
  void mix(const std::vector<T>& weights, int64_t keys, Scratch<T>& w) const {
    w.mixed.assign(p_.heads * keys, 0);
    for (int64_t g = 0; g < p_.heads; ++g)
      for (int64_t h = 0; h < p_.heads; ++h)
        for (int64_t j = 0; j < keys; ++j)
          w.mixed[g * keys + j] += weights[g * p_.heads + h] * w.scores[h * keys + j];
    w.scores.swap(w.mixed);
  }

  // Every term's score of the needed pairs.
  void score(const Sequence& s, int64_t i, const std::vector<uint8_t>& needed,
             Scratch<T>& w) const {
    w.terms.assign(count_ * p_.heads * s.k_len, 0);
    for (int64_t h = 0; h < p_.heads; ++h) {
      const auto each_key = [&](int64_t term, const auto& value) {
        T* scores = &w.terms[(term * p_.heads + h) * s.k_len];
        for (int64_t j = 0; j < s.k_len; ++j)
          if (needed[h * s.k_len + j]) scores[j] = value(j);
      };
      if (s.k_len == 0) continue;
      int64_t term = 0;
      load_query(s, h, i, query_plus_, w.x);
      each_key(term++, [&](int64_t j) {
        return static_cast<T>(terms_.scale) * dot_key(s, h, j, nullptr, w.x.data(), w.row);
      });
      for (const OffsetBias& bias : terms_.biases)
        each_key(term++, [&](int64_t j) { return static_cast<T>(bias.at(h, w.offsets[j])); });
      for (size_t n = 0; n < tables_.size(); ++n) {
        const Projection& projection = terms_.projections[n];
        const auto row = [&](int64_t j) {
          return tables_[n].row(h, projection.map.row(w.offsets[j]));
        };
        const T scale = static_cast<T>(projection.scale);
        if (projection.side == Side::query) {
          load_query(s, h, i, plus_[n], w.x);
          each_key(term++, [&](int64_t j) { return scale * dot(w.x.data(), row(j)); });
        } else {
          const T* plus = plus_[n].empty() ? nullptr : &plus_[n][h * p_.head_dim];
          each_key(term++,
                   [&](int64_t j) { return scale * dot_key(s, h, j, plus, row(j), w.row); });
        }
      }
      for (size_t n = 0; n < segment_tables_.size(); ++n) {
        load_query(s, h, i, segment_plus_[n], w.x);
        const T scale = static_cast<T>(terms_.segments[n].scale);
        each_key(term++, [&](int64_t j) {
          return scale * dot(w.x.data(), segment_tables_[n].row(h, other_segment(s, i, j)));
        });
      }
    }
  }

  // 0 if query i and key j are of the same segment, else 1.
  int64_t other_segment(const Sequence& s, int64_t i, int64_t j) const {
    const auto id = [&](const ConstView& ids, int64_t row) {
      return *ids.at<int64_t>(ids.shape[0] == 1 ? 0 : s.batch, row);
    };
    return id(p_.q_segments, s.q_begin + i) != id(p_.k_segments, s.k_begin + j);
  }

  T dot(const T* x, const T* y) const {
    T sum = 0;
    for (int64_t c = 0; c < p_.head_dim; ++c) sum += x[c] * y[c];
    return sum;
  }

  // x = q_i + plus[h]
  void load_query(const Sequence& s, int64_t h, int64_t i, const std::vector<T>& plus,
                  std::vector<T>& x) const {
    x.resize(p_.head_dim);
    const T* q = row_of(q_, s.batch, h, s.q_begin + i, x);
    for (int64_t c = 0; c < p_.head_dim; ++c)
      x[c] = q[c] + (plus.empty() ? T(0) : plus[h * p_.head_dim + c]);
  }

  // <k_j + plus, x>
  T dot_key(const Sequence& s, int64_t h, int64_t j, const T* plus, const T* x,
            std::vector<T>& copy) const {
    const T* k = row_of(k_, s.batch, h / p_.group(), s.k_begin + j, copy);
    T sum = 0;
    for (int64_t c = 0; c < p_.head_dim; ++c)
      sum += (k[c] + (plus == nullptr ? T(0) : plus[c])) * x[c];
    return sum;
  }

  // scores[h] -> probabilities over the visible keys, 0 elsewhere; lse.
  void softmax(const Sequence& s, int64_t h, int64_t i, Scratch<T>& w) const {
    T* scores = w.scores.data() + h * s.k_len;
    const uint8_t* visible = w.visible.data() + h * s.k_len;
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
    bool any = false;
    for (int64_t j = 0; j < s.k_len; ++j) {
      if (!visible[j]) continue;
      if (!w.additive.empty()) scores[j] += w.additive[h * s.k_len + j];
      top = std::max(top, scores[j]);
      any = true;
    }
    for (int64_t j = 0; j < s.k_len; ++j) {
      scores[j] = visible[j] ? std::exp(scores[j] - top) : T(0);
      sum += scores[j];
    }
    if (!any) return;
    for (int64_t j = 0; j < s.k_len; ++j)
      if (visible[j]) scores[j] /= sum;
    if (lse_) *lse_.at<T>(s.batch, h, s.q_begin + i) = top + std::log(sum);
  }

  // P~ = P·keep/(1 - p)
  void drop(int64_t index, int64_t i, Scratch<T>& w) const {
    const int64_t keys = p_.sequences[index].k_len;
    const int32_t threshold = p_.dropout.threshold();
    const T keep = static_cast<T>(p_.dropout.keep_scale());
    for (int64_t h = 0; h < p_.heads; ++h) {
      const DropoutRow row = dropout_row(p_.dropout.seed, index, h, i);
      for (int64_t j = 0; j < keys; ++j)
        w.scores[h * keys + j] *=
            is_dropped(row, static_cast<uint32_t>(j), threshold) ? T(0) : keep;
    }
  }

  // O_i = sum over used keys of P[i,j]·(v_j + value terms)
  void sum_values(const Sequence& s, int64_t h, int64_t i, const std::vector<uint8_t>& used,
                  Scratch<T>& w) const {
    w.out.assign(p_.value_dim, 0);
    for (int64_t j = 0; j < s.k_len; ++j) {
      if (!used[h * s.k_len + j]) continue;
      const T probability = w.scores[h * s.k_len + j];
      const T* v = row_of(v_, s.batch, h / p_.group(), s.k_begin + j, w.row);
      for (int64_t c = 0; c < p_.value_dim; ++c) {
        T value = v[c];
        for (size_t n = 0; n < value_tables_.size(); ++n)
          value += value_tables_[n].row(h, terms_.values[n].map.row(w.offsets[j]))[c];
        w.out[c] += probability * value;
      }
    }
    for (int64_t c = 0; c < p_.value_dim; ++c)
      set_element(out_, w.out[c], s.batch, h, s.q_begin + i, c);
  }

  void store(const Sequence& s, int64_t i, const Scratch<T>& w, Materialized& result) const {
    for (int64_t h = 0; h < p_.heads; ++h) {
      const int64_t row = (s.batch * p_.heads + h) * p_.q_len + s.q_begin + i;
      const int64_t at = row * p_.k_len + s.k_begin;
      for (int64_t j = 0; j < s.k_len; ++j) {
        result.probabilities[at + j] = w.scores[h * s.k_len + j];
        for (int64_t t = 0; t < count_; ++t)
          result.scores[t].second[at + j] = w.terms[(t * p_.heads + h) * s.k_len + j];
      }
    }
  }

  void store(Tensor& probabilities, int64_t i, const Scratch<T>& w) const {
    const View to = probabilities.view();
    for (int64_t h = 0; h < p_.heads; ++h)
      for (int64_t j = 0; j < to.shape[2]; ++j)
        *to.at<float>(h, i, j) = static_cast<float>(w.scores[h * to.shape[2] + j]);
  }

  const Problem& p_;
  const ConstView q_, k_, v_;
  const Terms& terms_;
  const View out_, lse_;
  const bool keep_;
  std::vector<Tensor>* const by_sequence_;
  size_t first_ = 0;   // of its tensors
  int64_t count_ = 1;  // score terms: content, biases, projections, segments
  std::vector<T> query_plus_, talking_logits_, talking_probabilities_;
  std::vector<Table<T>> tables_, value_tables_, segment_tables_;
  std::vector<std::vector<T>> plus_, segment_plus_;
};

void check_talking(const char* name, const ConstView& weights, int64_t heads) {
  if (!weights) return;
  require(is_floating(weights.dtype), kScope, name, " must be floating point, got ",
          name_of(weights.dtype));
  require(weights.rank == 2 && weights.shape[0] == heads && weights.shape[1] == heads, kScope, name,
          " has shape ", shape_text(weights), " but must be (", heads, ", ", heads, ")");
}

}  // namespace

Materialized materialized_forward(const Problem& problem, const ConstView& q, const ConstView& k,
                                  const ConstView& v, const Terms& terms,
                                  const MaterializedOptions& extras, const View& out,
                                  const View& lse) {
  check_talking("talking_logits", extras.talking_logits, problem.heads);
  check_talking("talking_probabilities", extras.talking_probabilities, problem.heads);
  count_materialized();
  if (q.dtype == DType::f64)
    return Computation<double>(problem, q, k, v, terms, extras, out, lse).run();
  return Computation<float>(problem, q, k, v, terms, extras, out, lse).run();
}

}  // namespace locant::inline v0
