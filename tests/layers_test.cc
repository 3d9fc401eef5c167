// Layers against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "locant/check/random.h"
#include "locant/core/executor.h"
#include "locant/kernels/isa.h"
#include "locant/kernels/rows.h"
#include "locant/layers/embedding.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "tests/message_of.h"

namespace locant {
namespace {

std::vector<float> random_values(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = static_cast<float>(random.symmetric());
  return values;
}

double applied(Activation activation, double x) {
  switch (activation) {
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::none:
      break;
  }
  return x;
}

constexpr Activation kActivations[] = {Activation::none,   Activation::gelu, Activation::gelu_tanh,
                                       Activation::relu,   Activation::tanh, Activation::silu,
                                       Activation::sigmoid};

struct Sizes {
  int64_t m, n, k;
};

// Within, at and across groups of rows, panels, blocks of the depth and tiles.
constexpr Sizes kSizes[] = {{1, 1, 1},    {6, 16, 64},   {7, 17, 3},     {5, 33, 300},
                            {145, 50, 9}, {13, 400, 20}, {290, 31, 257}, {19, 70, 1031}};

TEST(Linear, IsThePlainProductOnEveryIsa) {
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const auto& [m, n, k] : kSizes)
      for (const Activation activation : kActivations) {
        const auto x = random_values(m * k, 1), w = random_values(n * k, 2),
                   b = random_values(n, 3), r = random_values(m * n, 4),
                   f = random_values(n * k, 5);
        const Linear layer(view(w.data(), {n, k}), view(b.data(), {n}));
        const Linear factor(view(f.data(), {n, k}), view(b.data(), {n}));
        std::vector<float> y(static_cast<size_t>(m * n), 12345.0f);
        // Every other activation with a gate.
        const bool gated = static_cast<int>(activation) % 2 == 1;
        layer.run(view(x.data(), {m, k}), view(y.data(), {m, n}),
                  {.activation = activation,
                   .factor = gated ? &factor : nullptr,
                   .residual = view(r.data(), {m, n})});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = b[j], other = gated ? b[j] : 1.0;
            for (int64_t t = 0; t < k; ++t) {
              sum += static_cast<double>(x[i * k + t]) * w[j * k + t];
              if (gated) other += static_cast<double>(x[i * k + t]) * f[j * k + t];
            }
            const double expected = applied(activation, sum) * other + r[i * n + j];
            // Each sum is this far off at most, and the slope of no activation exceeds 1.2.
            const double off = 4e-7 * static_cast<double>(k) + 1e-6;
            ASSERT_NEAR(y[i * n + j], expected,
                        gated ? off * (1.2 * std::abs(other) + std::abs(sum) + 1.0) : off)
                << name << " " << m << "x" << n << "x" << k << " at " << i << ", " << j;
          }
      }
  }
  set_isa("best");
}

TEST(Linear, PiecesStandOneUnderTheOther) {
  constexpr int64_t K = 21;
  const auto w = random_values(40 * K, 1), b = random_values(40, 2), x = random_values(5 * K, 3);
  const Linear whole(view(w.data(), {40, K}), view(b.data(), {40}));
  // Pieces that do not fill panels, the second without a bias of its own.
  const ConstView weights[] = {view(w.data(), {7, K}), view(w.data() + 7 * K, {24, K}),
                               view(w.data() + 31 * K, {9, K})};
  const ConstView biases[] = {view(b.data(), {7}), {}, view(b.data() + 31, {9})};
  const Linear pieces(weights, biases);
  EXPECT_EQ(pieces.outputs(), 40);
  EXPECT_EQ(pieces.inputs(), K);
  std::vector<float> a(200), c(200);
  whole.run(view(x.data(), {5, K}), view(a.data(), {5, 40}));
  pieces.run(view(x.data(), {5, K}), view(c.data(), {5, 40}));
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 40; ++j) {
      const float missing = j >= 7 && j < 31 ? b[j] : 0.0f;
      EXPECT_NEAR(c[i * 40 + j] + missing, a[i * 40 + j], 1e-5);
    }
}

TEST(Linear, BitsOfARowDependNeitherOnThreadsNorOnCompany) {
  constexpr int64_t M = 300, N = 100, K = 1100;
  const auto x = random_values(M * K, 1), w = random_values(N * K, 2), b = random_values(N, 3);
  const Linear layer(view(w.data(), {N, K}), view(b.data(), {N}));
  const int before = num_threads();
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    std::vector<float> y(M * N);
    layer.run(view(x.data(), {M, K}), view(y.data(), {M, N}), {.activation = Activation::gelu});
    if (first.empty()) first = y;
    EXPECT_EQ(y, first);
  }
  set_num_threads(before);
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
    std::vector<float> y(static_cast<size_t>(rows * N));
    layer.run(view(&x[(M - rows) * K], {rows, K}), view(y.data(), {rows, N}),
              {.activation = Activation::gelu});
    EXPECT_TRUE(std::equal(y.begin(), y.end(), first.end() - rows * N)) << rows;
  }
}

// Few rows are normalised after the product, many by the tile that made them.
TEST(Linear, NormFollowsThePlainProductForFewRowsAndMany) {
  constexpr int64_t N = 70, K = 40;
  const auto w = random_values(N * K, 2), b = random_values(N, 3), gamma = random_values(N, 4),
             beta = random_values(N, 5);
  const LayerNorm norm{view(gamma.data(), {N}), view(beta.data(), {N}), 1e-5f};
  const int before = num_threads();
  for (const std::string& name : available_isas()) {
    set_isa(name);
    const Linear layer(view(w.data(), {N, K}), view(b.data(), {N}));
    for (const int64_t m : {1, 13, 300, 530, 1031}) {
      const auto x = random_values(m * K, 1), r = random_values(m * N, 6);
      std::vector<float> first;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        std::vector<float> y(static_cast<size_t>(m * N), 12345.0f);
        layer.run(view(x.data(), {m, K}), view(y.data(), {m, N}),
                  {.residual = view(r.data(), {m, N}), .norm = &norm});
        if (first.empty()) first = y;
        ASSERT_EQ(y, first) << name << " " << m << " rows, " << threads << " threads";
      }
      for (int64_t i = 0; i < m; ++i) {
        std::vector<double> sums(N);
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < N; ++j) {
          sums[j] = static_cast<double>(b[j]) + r[i * N + j];
          for (int64_t t = 0; t < K; ++t)
            sums[j] += static_cast<double>(x[i * K + t]) * w[j * K + t];
          mean += sums[j] / N;
        }
        for (const double sum : sums) variance += (sum - mean) * (sum - mean) / N;
        for (int64_t j = 0; j < N; ++j)
          ASSERT_NEAR(first[i * N + j],
                      (sums[j] - mean) / std::sqrt(variance + 1e-5) * gamma[j] + beta[j], 3e-6)
              << name << " " << m << " rows, at " << i << ", " << j;
      }
    }
  }
  set_isa("best");
  set_num_threads(before);
}

TEST(Linear, ArgumentsAreCheckedByName) {
  std::vector<float> data(100);
  const Linear layer(view(data.data(), {4, 3}), {});
  const ConstView x = view(data.data(), {2, 3});
  const View y = view(data.data() + 50, {2, 4});
  EXPECT_EQ(message_of([&] { layer.run(x, y); }), "no error");
  EXPECT_EQ(message_of([&] {
              layer.run(view(data.data(), {3, 2}), y);
            }),
            "[linear] shapes must be (M, K), (N, K) and (M, N), got (3, 2), (4, 3) and (2, 4)");
  EXPECT_EQ(message_of([&] {
              layer.run(x, view(data.data(), {2, 4}));
            }),
            "[linear] y overlaps x or residual in memory");
  EXPECT_EQ(message_of([&] {
              layer.run(x, y, {.residual = view(data.data(), {2, 3})});
            }),
            "[linear] residual is (2, 3) but y is (2, 4)");
  const Linear other(view(data.data(), {5, 3}), {});
  EXPECT_EQ(message_of([&] { layer.run(x, y, {.factor = &other}); }),
            "[linear] factor is (5, 3) but W is (4, 3)");
  const LayerNorm narrow{view(data.data(), {3}), view(data.data(), {4})};
  EXPECT_EQ(message_of([&] { layer.run(x, y, {.norm = &narrow}); }),
            "[norm] gamma must be f32 (4), got (3)");
}

TEST(LayerNorm, IsThePlainFormulaOnEveryIsa) {
  constexpr int64_t M = 40;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const int64_t n : {1, 3, 16, 33, 300}) {
      auto x = random_values(M * n, 1), r = random_values(M * n, 2);
      for (float& value : x) value = 50 + 3 * value;  // a mean far from zero
      const auto gamma = random_values(n, 3), beta = random_values(n, 4);
      const LayerNorm norm{view(gamma.data(), {n}), view(beta.data(), {n}), 1e-5f};
      std::vector<float> y(static_cast<size_t>(M * n));
      for (const bool with_residual : {false, true}) {
        if (with_residual)
          norm.run(view(x.data(), {M, n}), view(r.data(), {M, n}), view(y.data(), {M, n}));
        else
          norm.run(view(x.data(), {M, n}), view(y.data(), {M, n}));
        for (int64_t i = 0; i < M; ++i) {
          std::vector<double> row;
          double mean = 0, variance = 0;
          for (int64_t c = 0; c < n; ++c)
            mean += row.emplace_back(
                static_cast<double>(x[i * n + c] + (with_residual ? r[i * n + c] : 0.0f)));
          mean /= static_cast<double>(n);
          for (const double value : row) variance += (value - mean) * (value - mean);
          variance /= static_cast<double>(n);
          for (int64_t c = 0; c < n; ++c)
            // The mean of numbers near 50 is known to 4e-6; its share is divided by sqrt(variance).
            ASSERT_NEAR(y[i * n + c],
                        (row[c] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c],
                        n == 1 ? 2e-3 : 3e-5)
                << name << " width " << n << " row " << i;
        }
      }
    }
  }
  set_isa("best");
}

TEST(RmsNorm, IsThePlainFormulaOnEveryIsa) {
  constexpr int64_t M = 40;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const int64_t n : {1, 3, 16, 33, 300}) {
      auto x = random_values(M * n, 1);
      for (float& value : x) value += 0.5f;  // a mean that must stay
      const auto gamma = random_values(n, 3);
      const RmsNorm norm{view(gamma.data(), {n}), 1e-3f};
      std::vector<float> y(x.size());
      norm.run(view(x.data(), {M, n}), view(y.data(), {M, n}));
      for (int64_t i = 0; i < M; ++i) {
        double squares = 0;
        for (int64_t c = 0; c < n; ++c) squares += static_cast<double>(x[i * n + c]) * x[i * n + c];
        const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-3);
        for (int64_t c = 0; c < n; ++c)
          ASSERT_NEAR(y[i * n + c], x[i * n + c] * scale * gamma[c], 3e-6)
              << name << " width " << n << " row " << i;
      }
    }
  }
  set_isa("best");
}

TEST(Activations, StayFiniteFarOutAndKeepNaN) {
  for (const Activation activation : kActivations) {
    std::vector<float> x = {-1e30f, -200.0f, -88.0f, -5.0f, -1e-20f, 0.0f,
                            1e-20f, 5.0f,    88.0f,  1e8f,  NAN};
    const std::vector<float> before = x;
    activate(activation, view(x.data(), {1, 11}));
    for (size_t n = 0; n + 1 < x.size(); ++n) {
      const double expected = applied(activation, before[n]);
      EXPECT_NEAR(x[n], expected, 1e-6 + 1e-6 * std::abs(expected)) << before[n];
    }
    EXPECT_TRUE(std::isnan(x.back())) << static_cast<int>(activation);
  }
}

TEST(Embedding, GathersAndAddsRows) {
  const float table[] = {1, 2, 3, 4, 5, 6};
  std::vector<float> out(6);
  const int64_t ids[] = {2, 0, 2};
  gather_rows(view(table, {3, 2}), ids, false, view(out.data(), {3, 2}));
  EXPECT_EQ(out, (std::vector<float>{5, 6, 1, 2, 5, 6}));
  gather_rows(view(table, {3, 2}), ids, true, view(out.data(), {3, 2}));
  EXPECT_EQ(out, (std::vector<float>{10, 12, 2, 4, 10, 12}));
  const int64_t far[] = {3, 0, 0};
  EXPECT_EQ(message_of([&] {
              gather_rows(view(table, {3, 2}), far, false, view(out.data(), {3, 2}));
            }),
            "[embedding] id 3 is not a row of a table of 3");
}

}  // namespace
}  // namespace locant
