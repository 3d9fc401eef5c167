// Float32 results stay as near to the float64 reference as plain float32 loops do, up to position
// 2^20; `locant check --ulp` prints the table.
#include "locant/check/ulp.h"

#include <gtest/gtest.h>

#include "locant/kernels/isa.h"
#include "tests/every_encoding.h"

namespace locant {
namespace {

class UlpOf : public testing::TestWithParam<std::string> {};

// The kernels sum in blocks and vectors, the loops one number after another: the same roundings in
// another order, of which there are fewer in a row. Twice the loops' error, and a rounding of the
// result and of the exponential each, must do.
TEST_P(UlpOf, IsThatOfPlainLoopsOnEveryIsa) {
  const std::vector<UlpResult> results = measure_ulp(find_encoding(GetParam()), available_isas());
  const UlpResult loops = results.back();
  EXPECT_EQ(loops.isa, "loops");
  EXPECT_GT(loops.worst, 0.5) << "no error at all: nothing was measured";
  for (const UlpResult& result : results) {
    EXPECT_EQ(result.results, loops.results);
    EXPECT_LE(result.worst, 2 * loops.worst + 2) << result.isa;
    EXPECT_LE(result.p99, 2 * loops.p99 + 1) << result.isa;
  }
}

INSTANTIATE_TEST_SUITE_P(All, UlpOf, testing::ValuesIn(every_encoding()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace locant
