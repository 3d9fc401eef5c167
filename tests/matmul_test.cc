// out = a·bᵀ against plain loops in double.
#include "locant/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "locant/check/random.h"
#include "locant/core/executor.h"
#include "locant/kernels/isa.h"
#include "tests/message_of.h"

namespace locant {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// Within, at and across the kernel's groups, panels, depth blocks and tiles.
constexpr Sizes kSizes[] = {{1, 1, 1},    {6, 16, 64},   {7, 17, 3},     {5, 33, 300},
                            {13, 200, 7}, {250, 31, 40}, {970, 193, 11}, {3, 8, 0}};

template <class Real>
std::vector<Real> random_values(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<Real> values(size);
  for (Real& value : values) value = static_cast<Real>(random.symmetric());
  return values;
}

// Fails unless out is a·bᵀ to `unit` per summed product; `out` may have any strides.
template <class Real>
void expect_product(const ConstView& a, const ConstView& b, const View& out, double unit) {
  for (int64_t i = 0; i < out.shape[0]; ++i)
    for (int64_t j = 0; j < out.shape[1]; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < a.shape[1]; ++t) sum += element(a, i, t) * element(b, j, t);
      const double tolerance = unit * static_cast<double>(a.shape[1]);
      ASSERT_NEAR(*out.at<Real>(i, j), sum, tolerance) << "at " << i << ", " << j;
    }
}

template <class Real>
constexpr double kUnit = sizeof(Real) == 4 ? 4e-7 : 1e-15;

template <class Real>
class Matmul : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Matmul, Types);

TYPED_TEST(Matmul, IsThePlainProductOnEveryIsa) {
  for (const std::string& name : available_isas()) {
    set_isa(name);
    for (const auto& [m, n, k] : kSizes) {
      const auto a = random_values<TypeParam>(m * k + 1, 1),
                 b = random_values<TypeParam>(n * k + 1, 2);
      std::vector<TypeParam> out(m * n, TypeParam(12345));
      matmul(view(a.data(), {m, k}), view(b.data(), {n, k}), view(out.data(), {m, n}));
      SCOPED_TRACE(name + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                   std::to_string(k));
      expect_product<TypeParam>(view(a.data(), {m, k}), view(b.data(), {n, k}),
                                view(out.data(), {m, n}), kUnit<TypeParam>);
    }
  }
  set_isa("best");
}

TYPED_TEST(Matmul, TakesAnyStrides) {
  constexpr int64_t M = 20, N = 37, K = 300;
  const DType dtype = dtype_of<TypeParam>();
  const auto a_values = random_values<TypeParam>(2 * M * K, 3);
  const auto b_values = random_values<TypeParam>(2 * N * K, 4);
  std::vector<TypeParam> out_values(3 * M * N);
  const Extents a_strides[] = {{K, 1}, {1, M}, {2 * K, 2}};
  const Extents b_strides[] = {{K, 1}, {1, N}, {2 * K, 2}, {2, 2 * N}};
  const Extents out_strides[] = {{N, 1}, {1, M}, {3 * N, 3}};
  const auto of = [](const Extents& strides) { return std::span(strides.data(), 2); };
  const int64_t a_shape[] = {M, K}, b_shape[] = {N, K}, out_shape[] = {M, N};
  for (const Extents& sa : a_strides)
    for (const Extents& sb : b_strides)
      for (const Extents& so : out_strides) {
        const ConstView a(a_values.data(), dtype, a_shape, of(sa));
        const ConstView b(b_values.data(), dtype, b_shape, of(sb));
        const View out(out_values.data(), dtype, out_shape, of(so));
        matmul(a, b, out);
        expect_product<TypeParam>(a, b, out, kUnit<TypeParam>);
      }
}

TYPED_TEST(Matmul, ConvertsWhatIsStored) {
  const auto a = random_values<float>(9 * 40, 5);
  const auto b = random_values<double>(18 * 40, 6);
  std::vector<TypeParam> out(9 * 18);
  matmul(view(a.data(), {9, 40}), view(b.data(), {18, 40}), view(out.data(), {9, 18}));
  expect_product<TypeParam>(view(a.data(), {9, 40}), view(b.data(), {18, 40}),
                            view(out.data(), {9, 18}), kUnit<TypeParam>);
}

TYPED_TEST(Matmul, BitsDependNeitherOnThreadsNorOnCompany) {
  constexpr int64_t M = 1000, N = 400, K = 270;
  const auto a = random_values<TypeParam>(M * K, 7), b = random_values<TypeParam>(N * K, 8);
  const int before = num_threads();
  std::vector<std::vector<TypeParam>> results;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    std::vector<TypeParam>& out = results.emplace_back(M * N);
    matmul(view(a.data(), {M, K}), view(b.data(), {N, K}), view(out.data(), {M, N}));
    EXPECT_EQ(out, results.front());
  }
  set_num_threads(before);
  // The last 11 rows and 9 columns alone.
  std::vector<TypeParam> corner(11 * 9);
  matmul(view(&a[(M - 11) * K], {11, K}), view(&b[(N - 9) * K], {9, K}),
         view(corner.data(), {11, 9}));
  for (int64_t i = 0; i < 11; ++i)
    for (int64_t j = 0; j < 9; ++j)
      EXPECT_EQ(corner[i * 9 + j], results.front()[(M - 11 + i) * N + N - 9 + j]);
}

TEST(MatmulArguments, AreCheckedByName) {
  std::vector<float> x(100);
  const auto error = [&](const ConstView& a, const ConstView& b, const View& out) {
    return message_of([&] { matmul(a, b, out); });
  };
  const ConstView a = view(x.data(), {2, 3}), b = view(x.data() + 6, {4, 3});
  const View out = view(x.data() + 50, {2, 4});
  EXPECT_EQ(error(a, b, out), "no error");
  EXPECT_EQ(error(a, b, view(x.data() + 50, {4, 2})),
            "[matmul] shapes must be (M, K), (N, K) and (M, N), got (2, 3), (4, 3) and (4, 2)");
  EXPECT_EQ(error(a, b, view(x.data() + 1, {2, 4})), "[matmul] out overlaps a or b in memory");
  const int64_t ids[12] = {};
  EXPECT_EQ(error(a, view(ids, {4, 3}), out), "[matmul] a and b must be floating point, got i64");
}

}  // namespace
}  // namespace locant
