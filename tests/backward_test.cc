// The fused backward against finite differences of the forward, in float64, term by term. The
// forward has its own, independent references.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "locant/attention/fused.h"
#include "locant/attention/fused_backward.h"
#include "locant/attention/stats.h"
#include "locant/core/executor.h"

namespace locant {
namespace {

using Numbers = std::vector<double>;

// Small enough for quick differences, large enough for several tiles each way.
struct Sizes {
  int64_t heads = 4, kv_heads = 4, q_len = 75, k_len = 67, dim = 20, value_dim = 20;
};

class Case {
 public:
  explicit Case(const Sizes& sizes) : s(sizes) {
    q = normal(s.heads * s.q_len * s.dim, 1);
    k = normal(s.kv_heads * s.k_len * s.dim, 1);
    v = normal(s.kv_heads * s.k_len * s.value_dim, 1);
    dout = normal(s.heads * s.q_len * s.value_dim, 1);
    problem.batch = 1;
    problem.heads = s.heads;
    problem.kv_heads = s.kv_heads;
    problem.q_len = s.q_len;
    problem.k_len = s.k_len;
    problem.head_dim = s.dim;
    problem.value_dim = s.value_dim;
    problem.sequences = {{.q_len = s.q_len, .k_len = s.k_len}};
    terms.scale = 0.3;
  }

  Numbers normal(int64_t n, double size) {
    std::normal_distribution<double> distribution(0, size);
    Numbers out(n);
    for (double& x : out) x = distribution(random_);
    return out;
  }

  ConstView heads_view(const Numbers& x, int64_t rows) const {
    const int64_t extents[] = {s.heads, rows, static_cast<int64_t>(x.size()) / (s.heads * rows)};
    return ConstView(x.data(), DType::f64, extents);
  }

  double loss() {
    out.assign(s.heads * s.q_len * s.value_dim, 0);
    lse.assign(s.heads * s.q_len, 0);
    fused_forward(problem, qv(), kv(), vv(), terms, tiling, view(out.data(), out_shape()),
                  view(lse.data(), {1, s.heads, s.q_len}));
    double sum = 0;
    for (size_t n = 0; n < out.size(); ++n) sum += out[n] * dout[n];
    return sum;
  }

  void backward() {
    loss();
    dq.assign(q.size(), NAN);
    dk.assign(k.size(), NAN);
    dv.assign(v.size(), NAN);
    const ForwardResult forward{qv(), kv(), vv(), view(std::as_const(out).data(), out_shape()),
                                view(std::as_const(lse).data(), {1, s.heads, s.q_len})};
    gradients =
        fused_backward(problem, terms, forward, view(std::as_const(dout).data(), out_shape()),
                       tiling, view(dq.data(), {1, s.heads, s.q_len, s.dim}),
                       view(dk.data(), {1, s.kv_heads, s.k_len, s.dim}),
                       view(dv.data(), {1, s.kv_heads, s.k_len, s.value_dim}));
  }

  // The derivative along a random direction, by the gradient and by differences.
  void expect_gradient(const std::string& name, Numbers& x, const Numbers& gradient) {
    ASSERT_EQ(x.size(), gradient.size()) << name;
    const Numbers before = x, direction = normal(static_cast<int64_t>(x.size()), 1);
    double along = 0;
    for (size_t n = 0; n < x.size(); ++n) along += gradient[n] * direction[n];
    constexpr double kStep = 3e-5;
    const auto loss_at = [&](double step) {
      for (size_t n = 0; n < x.size(); ++n) x[n] = before[n] + step * direction[n];
      return loss();
    };
    // Fourth order: some parameters are multiplied by distances, so their third derivatives are
    // large.
    const double near = loss_at(kStep) - loss_at(-kStep);
    const double far = loss_at(2 * kStep) - loss_at(-2 * kStep);
    const double difference = (8 * near - far) / (12 * kStep);
    x = before;
    EXPECT_NEAR(along, difference, 1e-7 * (1 + std::abs(difference))) << name;
  }

  void expect_inputs() {
    expect_gradient("q", q, dq);
    expect_gradient("k", k, dk);
    expect_gradient("v", v, dv);
  }

  Sizes s;
  Numbers q, k, v, dout, out, lse, dq, dk, dv;
  Problem problem;
  Terms terms;
  Tiling tiling{.rows = 17, .keys = 32};
  TermGradients gradients;

 private:
  ConstView qv() const { return view(q.data(), {1, s.heads, s.q_len, s.dim}); }
  ConstView kv() const { return view(k.data(), {1, s.kv_heads, s.k_len, s.dim}); }
  ConstView vv() const { return view(v.data(), {1, s.kv_heads, s.k_len, s.value_dim}); }
  View view(double* data, const std::vector<int64_t>& shape) const {
    return View(data, DType::f64, shape);
  }
  ConstView view(const double* data, const std::vector<int64_t>& shape) const {
    return ConstView(data, DType::f64, shape);
  }
  std::vector<int64_t> out_shape() const { return {1, s.heads, s.q_len, s.value_dim}; }

  std::mt19937 random_{7};
};

Numbers numbers(const Tensor& tensor) {
  const ConstView view = tensor.view();
  const double* data = view.at<double>();
  return {data, data + view.size()};
}

// Rises by one per offset around 0, more slowly further out, and is constant beyond.
RowMap slowing_map() {
  RowMap map{.first = -40, .rows = {}};
  int32_t row = 0;
  for (int64_t offset = -40; offset <= 40; ++offset) {
    map.rows.push_back(row);
    if (std::abs(offset) < 12 || offset % 3 == 0) ++row;
  }
  return map;
}
RowMap leaping_map() {  // two at a time
  RowMap map{.first = -20, .rows = {}};
  for (int32_t n = 0; n <= 40; ++n) map.rows.push_back(2 * n);
  return map;
}
int64_t rows_of(const RowMap& map) {
  return map.rows.back() + 1;
}

struct Setting {
  std::string name;
  std::function<void(Case&)> set;
  Sizes sizes;
};

std::vector<Setting> settings() {
  return {
      {"full", [](Case&) {}, {}},
      {"tuned_tiles", [](Case& c) { c.tiling = {}; }, {}},
      {"causal_grouped", [](Case& c) { c.problem.causal = true; }, {.kv_heads = 2}},
      {"window_narrow_values",
       [](Case& c) {
         c.problem.window_left = 21;
         c.problem.window_right = 9;
       },
       {.value_dim = 9}},
      {"dropout",
       [](Case& c) { c.problem.dropout = {.p = 0.3, .seed = 11}; },
       {.q_len = 33, .k_len = 101}},
      {"packed",
       [](Case& c) {
         c.problem.sequences = {
             {.q_len = 30, .k_len = 20},
             {.q_begin = 30, .q_len = 40, .k_begin = 20, .k_len = 47, .q_start = 7}};
       },
       {}},
  };
}

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

class BackwardTest : public testing::TestWithParam<Setting> {
 protected:
  BackwardTest() : c(GetParam().sizes) { GetParam().set(c); }
  Case c;
};

TEST_P(BackwardTest, Inputs) {
  const int64_t calls = stats().backward_calls, tiles = stats().backward_tiles;
  c.backward();
  EXPECT_EQ(stats().backward_calls, calls + 1);
  EXPECT_GT(stats().backward_tiles, tiles);
  c.expect_inputs();
}

TEST_P(BackwardTest, OffsetBias) {
  OffsetBias bias;
  bias.name = "bias";
  bias.first = -9;
  bias.count = 19;
  bias.values = c.normal(c.s.heads * bias.count, 0.5);
  bias.left_slope = c.normal(c.s.heads, 0.05);
  bias.right_slope = c.normal(c.s.heads, 0.05);
  c.terms.biases.push_back(bias);
  c.backward();
  c.expect_inputs();
  OffsetBias& term = c.terms.biases[0];
  c.expect_gradient("values", term.values, c.gradients.biases[0].values);
  c.expect_gradient("left_slope", term.left_slope, c.gradients.biases[0].left_slope);
  c.expect_gradient("right_slope", term.right_slope, c.gradients.biases[0].right_slope);
}

TEST_P(BackwardTest, ProjectionsOfBothSides) {
  for (const RowMap& map : {slowing_map(), leaping_map()})
    for (const Side side : {Side::query, Side::key}) {
      Numbers table = c.normal(c.s.heads * rows_of(map) * c.s.dim, 0.3);
      c.terms.projections = {{.name = "p",
                              .side = side,
                              .scale = 0.2,
                              .plus = {},
                              .table = c.heads_view(table, rows_of(map)),
                              .map = map}};
      c.backward();
      c.expect_inputs();
      c.expect_gradient("table", table, numbers(c.gradients.projections[0].table));
    }
}

TEST_P(BackwardTest, SharedTableAndValues) {
  if (c.s.value_dim != c.s.dim) GTEST_SKIP() << "one table serves keys and values";
  const RowMap map = slowing_map();
  Numbers table = c.normal(rows_of(map) * c.s.dim, 0.3);
  const ConstView shared(table.data(), DType::f64, std::vector<int64_t>{1, rows_of(map), c.s.dim});
  c.terms.projections = {
      {.name = "k", .side = Side::query, .scale = 0.3, .plus = {}, .table = shared, .map = map}};
  c.terms.values = {{.name = "v", .table = shared, .map = map}};
  c.backward();
  c.expect_inputs();
  Numbers both = numbers(c.gradients.projections[0].table);
  const Numbers values = numbers(c.gradients.values[0].table);
  for (size_t n = 0; n < both.size(); ++n) both[n] += values[n];
  c.expect_gradient("table", table, both);
}

TEST_P(BackwardTest, AddedVectorsAndSegments) {
  const RowMap map = slowing_map();
  Numbers u = c.normal(c.s.heads * c.s.dim, 0.3), w = u, s = u;
  Numbers table = c.normal(c.s.heads * rows_of(map) * c.s.dim, 0.3);
  Numbers segments = c.normal(c.s.heads * 2 * c.s.dim, 0.3);
  const auto vector_view = [&](const Numbers& x) {
    return ConstView(x.data(), DType::f64, std::vector<int64_t>{c.s.heads, c.s.dim});
  };
  std::vector<int64_t> q_ids(c.s.q_len), k_ids(c.s.k_len);
  for (size_t n = 0; n < q_ids.size(); ++n) q_ids[n] = static_cast<int64_t>(n / 7 % 3);
  for (size_t n = 0; n < k_ids.size(); ++n) k_ids[n] = static_cast<int64_t>(n / 11 % 3);
  c.problem.q_segments = view(std::as_const(q_ids).data(), {1, c.s.q_len});
  c.problem.k_segments = view(std::as_const(k_ids).data(), {1, c.s.k_len});
  c.terms.query_plus = vector_view(u);
  c.terms.projections = {{.name = "position",
                          .side = Side::query,
                          .scale = 0.3,
                          .plus = vector_view(w),
                          .table = c.heads_view(table, rows_of(map)),
                          .map = map}};
  c.terms.segments = {{.name = "segment",
                       .scale = 0.25,
                       .plus = vector_view(s),
                       .table = c.heads_view(segments, 2)}};
  c.backward();
  c.expect_inputs();
  c.expect_gradient("u", u, numbers(c.gradients.query_plus));
  c.expect_gradient("w", w, numbers(c.gradients.projections[0].plus));
  c.expect_gradient("s", s, numbers(c.gradients.segments[0].plus));
  c.expect_gradient("table", table, numbers(c.gradients.projections[0].table));
  c.expect_gradient("segments", segments, numbers(c.gradients.segments[0].table));
}

INSTANTIATE_TEST_SUITE_P(Settings, BackwardTest, testing::ValuesIn(settings()),
                         [](const auto& setting) { return setting.param.name; });

TEST(Backward, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<Numbers> results;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Case c({.heads = 2, .kv_heads = 1, .q_len = 130, .k_len = 2200});
    c.tiling = {};
    const RowMap map = slowing_map();
    const Numbers table = c.normal(rows_of(map) * c.s.dim, 0.3);
    c.terms.projections = {{.name = "p",
                            .side = Side::key,
                            .scale = 0.2,
                            .plus = {},
                            .table = ConstView(table.data(), DType::f64,
                                               std::vector<int64_t>{1, rows_of(map), c.s.dim}),
                            .map = map}};
    c.backward();
    Numbers all = numbers(c.gradients.projections[0].table);
    for (const Numbers& x : {c.dq, c.dk, c.dv}) all.insert(all.end(), x.begin(), x.end());
    results.push_back(all);
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// A key that nobody sees, full of NaN, must not reach any gradient but its own zeros.
TEST(Backward, HiddenNaNStaysHidden) {
  Case c({});
  c.problem.sequences[0].k_len = c.s.k_len - 1;
  c.problem.window_left = 5;
  c.problem.window_right = 5;  // key 60 is hidden from query 0, seen by query 60
  c.backward();
  const Numbers dq = c.dq, dk = c.dk;
  c.k[60 * c.s.dim] = NAN;
  c.backward();
  for (int64_t i = 0; i < c.s.q_len; ++i) {
    const bool sees = std::abs(i - 60) <= 5;
    for (int64_t e = 0; e < c.s.dim; ++e) {
      const size_t at = i * c.s.dim + e;
      if (sees) {
        EXPECT_TRUE(std::isnan(c.dq[at])) << i;
      } else {
        EXPECT_EQ(c.dq[at], dq[at]) << i;
      }
    }
  }
  for (int64_t j = 0; j < 50; ++j)  // keys that no spoilt query sees
    for (int64_t e = 0; e < c.s.dim; ++e)
      EXPECT_EQ(c.dk[j * c.s.dim + e], dk[j * c.s.dim + e]) << j;
}

TEST(Backward, RowsThatSeeNothingHaveNoGradient) {
  Case c({});
  c.problem.sequences[0].q_start = 1000;
  c.problem.window_left = 940;  // only queries up to 6 reach a key
  c.backward();
  for (int64_t i = 20; i < c.s.q_len; ++i)
    for (int64_t e = 0; e < c.s.dim; ++e) EXPECT_EQ(c.dq[i * c.s.dim + e], 0);
  c.expect_inputs();
}

}  // namespace
}  // namespace locant
