// Linear layers and norms: what they refuse, by name and before anything is computed; and the
// instruction set that a layer keeps.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "locant/check/random.h"
#include "locant/core/executor.h"
#include "locant/kernels/isa.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "tests/message_of.h"

namespace locant {
namespace {

class LinearArguments : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(y_data, std::vector<float>(60, 7.0f)) << "computed before it was refused";
  }

  std::string refused(const Linear& layer, const LinearSteps& steps = {}) {
    return message_of([&] { layer.run(x, y, steps); });
  }

  std::vector<float> data = std::vector<float>(60, 1.0f), y_data = std::vector<float>(60, 7.0f);
  Linear layer{view(data.data(), {4, 3}), {}};
  ConstView x = view(data.data(), {2, 3});
  View y = view(y_data.data(), {2, 4});
};

TEST_F(LinearArguments, ALayerWithoutWeightsIsRefused) {
  const Linear none;
  EXPECT_EQ(refused(none), "[linear] the layer has no weights");
  EXPECT_EQ(refused(layer, {.factor = &none}), "[linear] factor has no weights");
  EXPECT_EQ(none.inputs(), 0);
  EXPECT_EQ(none.outputs(), 0);
  EXPECT_EQ(none.bytes(), 0);
}

TEST_F(LinearArguments, NullsAreRefusedUnlessTheyAreEmpty) {
  const auto null = [](ConstView view) {
    view.data = nullptr;
    return view;
  };
  x = null(x);
  EXPECT_EQ(refused(layer), "[linear] x must not be null");
  x = view(data.data(), {2, 3});
  EXPECT_EQ(refused(layer, {.residual = null(y)}), "[linear] residual must not be null");
  y.data = nullptr;
  EXPECT_EQ(refused(layer), "[linear] y must not be null");
  x = null(view(data.data(), {0, 3}));
  y.shape[0] = 0;
  EXPECT_EQ(refused(layer), "no error");
  EXPECT_EQ(message_of([&] {
              const Linear bad(null(view(data.data(), {4, 3})), {});
            }),
            "[linear] weights must not be null");
  EXPECT_EQ(message_of([&] {
              const Linear bad(view(data.data(), {4, 3}), null(view(data.data(), {4})));
            }),
            "[linear] a bias must not be null");
}

TEST_F(LinearArguments, ANormWithoutItsWeightsIsRefused) {
  const ConstView four = view(data.data(), {4});
  const LayerNorm none, no_beta{four, {}, 1e-5f}, no_gamma{{}, four, 1e-5f},
      narrow{view(data.data(), {3}), four, 1e-5f};
  EXPECT_EQ(refused(layer, {.norm = &none}), "[norm] gamma must be f32 (4), got ()");
  EXPECT_EQ(refused(layer, {.norm = &no_gamma}), "[norm] gamma must be f32 (4), got ()");
  EXPECT_EQ(refused(layer, {.norm = &no_beta}), "[norm] beta must be f32 (4), got ()");
  EXPECT_EQ(refused(layer, {.norm = &narrow}), "[norm] gamma must be f32 (4), got (3)");
  LayerNorm null{four, four, 1e-5f};
  null.gamma.data = nullptr;
  EXPECT_EQ(refused(layer, {.norm = &null}), "[norm] gamma must not be null");
  EXPECT_EQ(message_of([&] {
              null.run(view(data.data(), {2, 4}), y);
            }),
            "[norm] gamma must not be null");
}

TEST_F(LinearArguments, RowsOfResultsMustNotOverlap) {
  const int64_t shape[] = {2, 4};
  for (const int64_t apart : {0, 3, -3}) {
    const int64_t strides[] = {apart, 1};
    y = View(y_data.data() + 20, DType::f32, shape, strides);
    EXPECT_EQ(refused(layer), "[linear] y has rows of 4 elements, " + std::to_string(apart) +
                                  " elements apart: they overlap");
  }
  const int64_t one[] = {1, 4}, any[] = {0, 1};  // a single row is apart from all others
  std::vector<float> own(4);
  EXPECT_EQ(message_of([&] {
              layer.run(view(data.data(), {1, 3}), View(own.data(), DType::f32, one, any));
            }),
            "no error");
}

TEST_F(LinearArguments, ABiasIsRefusedBeforeTheProduct) {
  const ConstView w = view(data.data(), {4, 3});
  EXPECT_EQ(message_of([&] { project(x, w, view(data.data(), {7}), y); }),
            "[linear] bias must be f32 (4), got (7)");
  ConstView null = view(data.data(), {4});
  null.data = nullptr;
  EXPECT_EQ(message_of([&] { project(x, w, null, y); }), "[linear] bias must not be null");
  ConstView missing = x;
  missing.data = nullptr;
  EXPECT_EQ(message_of([&] { project(missing, w, {}, y); }), "[matmul] a must not be null");
}

// The instruction set that packed a layer runs it, with all that follows the product: whether rows
// are normalised in tiles or apart from them depends on the number of threads, and must not show.
TEST(LinearIsa, BitsOfANormDoNotDependOnThreadsAfterAnotherIsaIsForced) {
  constexpr int64_t M = 1024, K = 24, N = 300;
  Random random(3);
  const auto values = [&](int64_t n) {
    std::vector<float> out(static_cast<size_t>(n));
    for (float& value : out) value = static_cast<float>(random.symmetric());
    return out;
  };
  const auto w = values(N * K), x = values(M * K), gamma = values(N), beta = values(N);
  const LayerNorm norm{view(gamma.data(), {N}), view(beta.data(), {N}), 1e-5f};
  const int before = num_threads();
  set_isa("best");
  const Linear layer(view(w.data(), {N, K}), {});
  std::vector<float> first;
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const int threads : {1, 8}) {
      set_num_threads(threads);
      std::vector<float> y(M * N), alone(N);
      layer.run(view(x.data(), {M, K}), view(y.data(), {M, N}), {.norm = &norm});
      layer.run(view(x.data(), {1, K}), view(alone.data(), {1, N}), {.norm = &norm});
      if (first.empty()) first = y;
      EXPECT_TRUE(y == first) << name << ", " << threads << " threads";
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), first.begin())) << name;
    }
  }
  set_isa("best");
  set_num_threads(before);
}

}  // namespace
}  // namespace locant
