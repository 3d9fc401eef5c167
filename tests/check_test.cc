// The conformance matrix, and the generator behind it.
#include "locant/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "locant/check/pairwise.h"
#include "locant/kernels/isa.h"

namespace locant {
namespace {

struct MatrixPart {
  std::string encoding, isa;
};

void PrintTo(const MatrixPart& part, std::ostream* out) {
  *out << part.encoding << " on " << part.isa;
}

std::vector<MatrixPart> matrix_parts() {
  std::vector<MatrixPart> out;
  for (const EncodingEntry& entry : encodings())
    for (const std::string& name : available_isas()) out.push_back({entry.name, name});
  return out;
}

class ConformanceTest : public testing::TestWithParam<MatrixPart> {};

TEST_P(ConformanceTest, FusedAttentionEqualsTheReference) {
  const std::string before = isa();
  for (const CheckCase& check : check_cases(find_encoding(GetParam().encoding)))
    for (const CheckResult& result : run_check(check, std::vector{GetParam().isa}))
      EXPECT_TRUE(result.passed) << result.failure << "\n  " << describe(check)
                                 << "\n  repeat: " << result.command;
  EXPECT_EQ(isa(), before) << "the check must leave the ISA as it was";
}

INSTANTIATE_TEST_SUITE_P(Matrix, ConformanceTest, testing::ValuesIn(matrix_parts()),
                         [](const testing::TestParamInfo<MatrixPart>& part) {
                           return part.param.encoding + "_" + part.param.isa;
                         });

using Pair = std::tuple<int, int, int, int>;  // factor, level, factor, level

std::set<Pair> pairs_of(const std::vector<std::vector<int>>& rows) {
  std::set<Pair> out;
  for (const std::vector<int>& row : rows)
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) out.insert({f, row[f], g, row[g]});
  return out;
}

constexpr auto kAllCompatible = [](const FactorLevel&, const FactorLevel&) { return true; };

TEST(PairwiseTest, EveryPairOfLevelsMeets) {
  const std::vector<int> levels = {5, 4, 3, 3, 2, 2, 2};
  size_t wanted = 0;
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g) wanted += levels[f] * levels[g];
  const std::vector<std::vector<int>> rows = pairwise(levels, kAllCompatible, 1);
  EXPECT_EQ(pairs_of(rows).size(), wanted);
  EXPECT_GE(rows.size(), 20u) << "the two largest factors alone need 5·4 rows";
  EXPECT_LE(rows.size(), 30u) << "of 1440 in the full product";
}

TEST(PairwiseTest, IncompatibleLevelsNeverMeetAndAllOthersDo) {
  const std::vector<int> levels = {4, 3, 3};
  const auto compatible = [](const FactorLevel& x, const FactorLevel& y) {
    return !(x.factor == 0 && x.level == 2 && y.factor == 1 && y.level != 0);
  };
  const std::set<Pair> pairs = pairs_of(pairwise(levels, compatible, 1));
  EXPECT_EQ(pairs.count({0, 2, 1, 1}) + pairs.count({0, 2, 1, 2}), 0u);
  EXPECT_EQ(pairs.size(), 4u * 3 - 2 + 4 * 3 + 3 * 3);
}

TEST(PairwiseTest, SameArgumentsGiveTheSameRows) {
  const std::vector<int> levels = {6, 5, 4, 3};
  EXPECT_EQ(pairwise(levels, kAllCompatible, 7), pairwise(levels, kAllCompatible, 7));
  EXPECT_NE(pairwise(levels, kAllCompatible, 7), pairwise(levels, kAllCompatible, 8));
}

TEST(PairwiseTest, ContradictingConstraintsFail) {
  const auto impossible = [](const FactorLevel& x, const FactorLevel& y) {
    return x.factor == 0 && y.factor == 1;  // but factor 2 fits neither
  };
  EXPECT_THROW(pairwise({2, 2, 2}, impossible, 1), std::invalid_argument);
}

TEST(CheckCasesTest, AreDecodeStepsOrCrossAtLeastThreeTilesEachWay) {
  for (const EncodingEntry& entry : encodings())
    for (const CheckCase& check : check_cases(entry)) {
      EXPECT_TRUE(check.q_len == 3 || check.q_len > 2 * check.tiling.rows) << describe(check);
      EXPECT_GT(check.k_len, 2 * check.tiling.keys) << describe(check);
      EXPECT_EQ(check.heads % check.kv_heads, 0) << describe(check);
    }
}

TEST(CheckCasesTest, EveryConfigurationMeetsEveryLevelOfTheOtherFactors) {
  for (const EncodingEntry& entry : encodings()) {
    const std::vector<CheckCase> cases = check_cases(entry);
    for (const FieldValues& fields : entry.cases) {
      std::set<BatchKind> batches;
      std::set<VisibleKind> visibles;
      std::set<MaskKind> masks;
      std::set<LayoutKind> layouts;
      std::set<std::pair<DType, DType>> types;
      std::set<int64_t> starts, q_lengths;
      for (const CheckCase& check : cases) {
        if (check.fields != fields) continue;
        batches.insert(check.batch);
        visibles.insert(check.visible);
        masks.insert(check.mask);
        layouts.insert(check.layout);
        types.insert({check.dtype, check.out_dtype});
        q_lengths.insert(check.q_len);
        starts.insert(check.q_start - 1000 * check.k_start);
      }
      EXPECT_EQ(batches.size(), 4u) << entry.name;
      EXPECT_EQ(visibles.size(), 5u) << entry.name;
      EXPECT_EQ(masks.size(), 4u) << entry.name;
      EXPECT_EQ(layouts.size(), 3u) << entry.name;
      EXPECT_EQ(types.size(), 6u) << entry.name;
      EXPECT_EQ(starts.size(), 4u) << entry.name;
      EXPECT_EQ(q_lengths.size(), 4u) << entry.name;
    }
  }
}

TEST(RunCheckTest, ReportsAnUnknownIsaAsAFailureWithTheCommandThatRepeatsIt) {
  const CheckCase check = check_cases(find_encoding("none")).front();
  const std::vector<CheckResult> results = run_check(check, std::vector<std::string>{"abacus"});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].passed);
  EXPECT_EQ(results[0].command, "locant check none --case 0 --isa abacus");
}

}  // namespace
}  // namespace locant
