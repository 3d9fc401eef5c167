// Scores at the given positions and at shifted ones, compared pair by pair.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "locant/layers/analysis.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "shift_invariance";
constexpr int64_t kMaxShift = int64_t{1} << 60;  // as positions: sums stay within 64 bits

// The options with everything that says where rows stand moved by a shift.
class ShiftedOptions {
 public:
  ShiftedOptions(const AttendOptions& options, int64_t shift)
      : options_(options), sequences_(options.sequences.begin(), options.sequences.end()) {
    for (Sequence& s : sequences_) {
      s.q_start += shift;
      s.k_start += shift;
    }
    options_.sequences = sequences_;
    if (sequences_.empty()) {
      options_.q_start += shift;
      options_.k_start += shift;
    }
    options_.q_positions = shifted(options.q_positions, shift, q_positions_);
    options_.k_positions = shifted(options.k_positions, shift, k_positions_);
    options_.lse = {};
  }
  ShiftedOptions(const ShiftedOptions&) = delete;
  ShiftedOptions& operator=(const ShiftedOptions&) = delete;

  const AttendOptions& get() const { return options_; }

 private:
  static ConstView shifted(const ConstView& ids, int64_t shift, std::vector<int64_t>& storage) {
    if (!ids) return {};
    for (int64_t b = 0; b < ids.shape[0]; ++b)
      for (int64_t l = 0; l < ids.shape[1]; ++l) storage.push_back(*ids.at<int64_t>(b, l) + shift);
    return view(std::as_const(storage).data(), {ids.shape[0], ids.shape[1]});
  }

  AttendOptions options_;
  std::vector<Sequence> sequences_;
  std::vector<int64_t> q_positions_, k_positions_;
};

// Rows [begin, begin + length) of one batch entry as inputs that embed() takes.
struct Rows {
  int64_t batch, begin, length, start;
};

// A copy of q or k as inputs (B, L, H·d), with PE added to the rows of every sequence; seen as
// (B, H, L, d) again.
template <class Real>
class Embedded {
 public:
  explicit Embedded(const ConstView& x)
      : taken_(x.shape[0] * x.shape[2]),
        values_(x.size()),
        heads_(
            values_.data(), dtype_of<Real>(), x.shape,
            Extents{x.shape[2] * x.shape[1] * x.shape[3], x.shape[3], x.shape[1] * x.shape[3], 1}) {
    for (int64_t b = 0; b < x.shape[0]; ++b)
      for (int64_t h = 0; h < x.shape[1]; ++h)
        for (int64_t l = 0; l < x.shape[2]; ++l)
          for (int64_t c = 0; c < x.shape[3]; ++c)
            *heads_.at<Real>(b, h, l, c) = static_cast<Real>(element(x, b, h, l, c));
  }
  Embedded(const Embedded&) = delete;
  Embedded& operator=(const Embedded&) = delete;

  void add(const Encoding& encoding, const Rows& rows, const ConstView& ids) {
    for (int64_t l = rows.begin; l < rows.begin + rows.length; ++l) {
      const int64_t at = rows.batch * heads_.shape[2] + l;
      require(!taken_[at], kScope, "two sequences share row ", l, " of batch row ", rows.batch,
              ": an input that ", encoding.name(), " is added to stands at one position");
      taken_[at] = true;
    }
    const int64_t D = heads_.shape[1] * heads_.shape[3];
    const View tokens =
        view(heads_.template at<Real>(rows.batch, 0, rows.begin), {1, rows.length, D});
    EmbedOptions options;
    if (ids) {
      options.positions = ids;
      options.positions.data = ids.at<int64_t>(ids.shape[0] > 1 ? rows.batch : 0, rows.begin);
      options.positions.shape = {1, rows.length, 1, 1};
    } else {
      options.start = rows.start;
    }
    encoding.embed(tokens, options, tokens);
  }

  const View& heads() const { return heads_; }

 private:
  std::vector<bool> taken_;  // (B, L) rows that have their PE
  std::vector<Real> values_;
  View heads_;
};

// The sum of all terms, (B, H, Lq, Lk); 0 where a pair is not visible.
std::vector<double> scores_of(const ConstView& q, const ConstView& k, const Encoding& encoding,
                              const AttendOptions& options) {
  std::vector<std::byte> unused(q.size() * size_of(q.dtype));
  // Value terms have tables of head_dim columns, as k has: it stands in for v.
  const Materialized result =
      attend_materialized(q, k, k, encoding, options, {}, View(unused.data(), q.dtype, q.shape));
  std::vector<double> sum(q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2], 0.0);
  for (const auto& [name, part] : result.scores)
    for (size_t n = 0; n < sum.size(); ++n) sum[n] += part[n];
  return sum;
}

template <class Real>
std::vector<double> embedded_scores_of(const ConstView& q, const ConstView& k,
                                       const Encoding& encoding, const AttendOptions& options) {
  const Problem problem = make_problem(q, k, k, options);
  Embedded<Real> queries(q), keys(k);
  for (const Sequence& s : problem.sequences) {
    queries.add(encoding, {s.batch, s.q_begin, s.q_len, s.q_start}, options.q_positions);
    keys.add(encoding, {s.batch, s.k_begin, s.k_len, s.k_start}, options.k_positions);
  }
  return scores_of(queries.heads(), keys.heads(), encoding, options);
}

std::vector<double> scores_at(const ConstView& q, const ConstView& k, const Encoding& encoding,
                              const AttendOptions& options) {
  if (encoding.embed_dim() == 0) return scores_of(q, k, encoding, options);
  return q.dtype == DType::f64 ? embedded_scores_of<double>(q, k, encoding, options)
                               : embedded_scores_of<float>(q, k, encoding, options);
}

void check_inputs(const ConstView& q, const ConstView& k, const Encoding& encoding) {
  const int64_t D = encoding.embed_dim();
  if (D == 0) return;
  const auto check = [&](const char* name, const ConstView& x) {
    require(x.rank == 4 && x.shape[1] * x.shape[3] == D, kScope, encoding.name(),
            " is added to inputs of width ", D, " but ", name, " has shape ", shape_text(x),
            ": heads·head_dim must be ", D);
  };
  check("q", q);
  check("k", k);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t n = 0; n < a.size(); ++n) {
    const double change = std::abs(a[n] - b[n]);
    if (std::isnan(change)) return change;
    worst = std::max(worst, change);
  }
  return worst;
}

}  // namespace

std::vector<ShiftChange> shift_invariance(const ConstView& q, const ConstView& k,
                                          const Encoding& encoding, const AttendOptions& options,
                                          std::span<const int64_t> shifts) {
  for (const int64_t shift : shifts)
    require(shift >= -kMaxShift && shift <= kMaxShift, kScope, "shift ", shift, " is beyond ±2^60");
  check_inputs(q, k, encoding);
  const std::vector<double> before = scores_at(q, k, encoding, ShiftedOptions(options, 0).get());
  const double largest = largest_difference(before, std::vector<double>(before.size(), 0.0));
  std::vector<ShiftChange> changes;
  for (const int64_t shift : shifts) {
    const std::vector<double> after =
        scores_at(q, k, encoding, ShiftedOptions(options, shift).get());
    changes.push_back({.shift = shift,
                       .worst_change = largest_difference(before, after),
                       .largest_score = largest});
  }
  return changes;
}

}  // namespace locant::inline v0
