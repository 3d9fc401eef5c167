#include "locant/encodings/relative_sinusoid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "locant/core/error.h"
#include "locant/core/executor.h"
#include "locant/encodings/gradient_sums.h"
#include "locant/encodings/phasor.h"
#include "locant/kernels/matmul.h"

namespace locant::inline v0 {
namespace {

// Rows of a table, so that a wild mixture of positions is an error and not an allocation of
// terabytes.
constexpr int64_t kMaxRows = int64_t{1} << 22;

// Sinusoids made and projected at a time: few enough to stay in cache between the two.
constexpr int64_t kRowsAtOnce = 1024;
constexpr int64_t kRun = 64;  // consecutive positions share half of their phasors' work

using Pair = std::array<int64_t, 2>;

Phasors phasors_of(int64_t d_model) {
  std::vector<double> frequencies(d_model / 2);
  for (size_t t = 0; t < frequencies.size(); ++t)
    frequencies[t] =
        std::pow(10000.0, -2.0 * static_cast<double>(t) / static_cast<double>(d_model));
  return Phasors(std::move(frequencies));
}

// rows[n] = [sin | cos] of r = -(first + n), n < count.   rows (count, d_model)
template <class Real>
void fill_sinusoids(const Phasors& phasors, int64_t first, int64_t count, Real* rows) {
  const int64_t pairs = phasors.pairs();
  executor()->parallel_for((count + kRun - 1) / kRun, [&](int64_t run, int) {
    Phasors::Walk walk(phasors);
    for (int64_t n = run * kRun; n < std::min((run + 1) * kRun, count); ++n) {
      Real* row = rows + n * 2 * pairs;
      walk.row(-(first + n), row + pairs, row);
    }
  });
}

}  // namespace

struct RelativeSinusoid::Table {
  Problem::Offsets offsets;
  std::vector<float> f32;  // (rows, heads·d): one of the two is empty
  std::vector<double> f64;
  ConstView view;  // (heads, rows, d)
};

RelativeSinusoid::RelativeSinusoid(std::string scope, int64_t heads, int64_t head_dim,
                                   int64_t d_model, const Problem::Offsets& reach)
    : scope_(std::move(scope)),
      heads_(heads),
      head_dim_(head_dim),
      d_model_(d_model),
      reach_(reach) {}

// The rows that calls with these offsets need, and one more at each end: kernels take another path
// where one row serves a whole block of keys, and whether it does must not depend on where a table
// happens to end, which other sequences of the batch decide.
Problem::Offsets RelativeSinusoid::clamped(const Problem::Offsets& offsets) const {
  const auto [first, last] = reach_;
  const Problem::Offsets met{std::clamp(offsets.first, first, last),
                             std::clamp(offsets.last, first, last)};
  const Problem::Offsets out{std::max(met.first - 1, first), std::min(met.last + 1, last)};
  require(out.last - out.first < kMaxRows, scope_, "offsets from ", met.first, " to ", met.last,
          " need a table of more than ", kMaxRows, " rows; set clamp_len or a window");
  return out;
}

std::shared_ptr<const RelativeSinusoid::Table> RelativeSinusoid::make(
    const ConstView& weight, const Problem::Offsets& offsets, DType dtype) const {
  const Phasors phasors = phasors_of(d_model_);
  const int64_t rows = offsets.last - offsets.first + 1, width = heads_ * head_dim_;
  auto table = std::make_shared<Table>();
  table->offsets = offsets;
  const auto fill = [&](auto& values) {
    using Real = typename std::decay_t<decltype(values)>::value_type;
    values.resize(rows * width);
    std::vector<Real> sinusoids(std::min(rows, kRowsAtOnce) * d_model_);
    for (int64_t n = 0; n < rows; n += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, rows - n);
      fill_sinusoids(phasors, offsets.first + n, count, sinusoids.data());
      matmul(view(sinusoids.data(), {count, d_model_}), weight,
             view(&values[n * width], {count, width}));
    }
    table->view = ConstView(values.data(), dtype_of<Real>(), Extents{heads_, rows, head_dim_, 1},
                            Extents{head_dim_, width, 1, 0});
    table->view.rank = 3;
  };
  if (dtype == DType::f64) {
    fill(table->f64);
  } else {
    fill(table->f32);
  }
  return table;
}

void RelativeSinusoid::keep(const ConstView& weight, const Problem::Offsets& offsets) {
  kept_ = make(weight, clamped(offsets), weight.dtype == DType::f64 ? DType::f64 : DType::f32);
}

void RelativeSinusoid::add_term(const Problem& problem, const ConstView& weight, const ConstView& v,
                                Prepared& prepared) const {
  const Problem::Offsets needed = clamped(problem.visible_offsets());
  const bool wide = prepared.q.dtype == DType::f64;
  std::shared_ptr<const Table> table = kept_;
  if (table == nullptr || table->offsets.first > needed.first ||
      table->offsets.last < needed.last || (wide && table->f64.empty()))
    table = make(weight, needed, wide ? DType::f64 : DType::f32);
  RowMap map{.first = table->offsets.first, .rows = {}};
  map.rows.resize(table->offsets.last - table->offsets.first + 1);
  std::iota(map.rows.begin(), map.rows.end(), 0);
  prepared.terms.projections.push_back({.name = "position",
                                        .side = Side::query,
                                        .scale = prepared.terms.scale,
                                        .plus = v,
                                        .table = table->view,
                                        .map = std::move(map)});
  prepared.storage.push_back(std::move(table));
}

void RelativeSinusoid::pullback(const Projection& term, const TableGradient& dterm,
                                const View& dweight, const View& dv) const {
  add_to(dv, dterm.plus.view());
  const Phasors phasors = phasors_of(d_model_);
  const ConstView dtable = dterm.table.view();  // (heads, rows, d)
  const int64_t rows = dtable.shape[1];
  const auto add = [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> sinusoids(std::min(rows, kRowsAtOnce) * d_model_);
    std::vector<Real> product(head_dim_ * d_model_);
    for (int64_t n = 0; n < rows; n += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, rows - n);
      fill_sinusoids(phasors, term.map.first + n, count, sinusoids.data());
      const ConstView columns(sinusoids.data(), dtype_of<Real>(), Pair{d_model_, count},
                              Pair{1, d_model_});
      for (int64_t h = 0; h < heads_; ++h) {
        const ConstView own(dtable.at<Real>(h, n), dtype_of<Real>(), Pair{head_dim_, count},
                            Pair{1, head_dim_});
        matmul(own, columns, view(product.data(), {head_dim_, d_model_}));
        View to = dweight;  // rows of head h
        to.data = to.row(h * head_dim_, 0, 0);
        to.shape[0] = head_dim_;
        add_to(to, view(std::as_const(product).data(), {head_dim_, d_model_}));
      }
    }
  };
  dtable.dtype == DType::f64 ? add(double{}) : add(float{});
}

int64_t farthest_distance(int64_t clamp_len) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;  // twice it still fits
  return clamp_len > 0 ? std::min(clamp_len, kNoLimit) : kNoLimit;
}

}  // namespace locant::inline v0
