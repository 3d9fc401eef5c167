#include "locant/encodings/alibi/alibi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/message_of.h"

namespace locant {
namespace {

OffsetBias bias_of(const AlibiConfig& config) {
  Problem problem;
  problem.heads = problem.kv_heads = config.heads;
  problem.head_dim = problem.value_dim = config.head_dim;
  return Alibi(config).prepare(problem, {}, {}).terms.biases.at(0);
}

// By the penalty of one step.
std::vector<double> slopes_of(int64_t heads) {
  const OffsetBias bias = bias_of({.heads = heads, .head_dim = 8, .slopes = {}});
  std::vector<double> out;
  for (int64_t h = 0; h < heads; ++h) out.push_back(-bias.at(h, -1));
  return out;
}

TEST(Alibi, PowersOfTwoHaveAGeometricSequence) {
  EXPECT_EQ(slopes_of(1), (std::vector<double>{1.0 / 256}));
  EXPECT_EQ(slopes_of(2), (std::vector<double>{1.0 / 16, 1.0 / 256}));
  EXPECT_EQ(slopes_of(8), (std::vector<double>{1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32,
                                               1.0 / 64, 1.0 / 128, 1.0 / 256}));
}

TEST(Alibi, OtherNumbersContinueWithEveryOtherSlopeOfTwiceAsMany) {
  const std::vector<double> twelve = slopes_of(12), sixteen = slopes_of(16);
  for (int h = 0; h < 8; ++h) EXPECT_EQ(twelve[h], std::ldexp(1.0, -1 - h));
  for (int h = 0; h < 4; ++h) EXPECT_EQ(twelve[8 + h], sixteen[2 * h]);
  EXPECT_NEAR(twelve[8], 0.70710678118654752, 1e-15);
  EXPECT_NEAR(twelve[11], 0.08838834764831845, 1e-15);
}

TEST(Alibi, ThePenaltyIsSymmetricAndLinearAtAnyDistance) {
  const OffsetBias bias = bias_of({.heads = 2, .head_dim = 8, .slopes = {0.5, -3}});
  const int64_t far = int64_t{1} << 40;
  for (const int64_t offset : {int64_t{0}, int64_t{1}, int64_t{7}, far})
    for (const int64_t signed_offset : {offset, -offset}) {
      EXPECT_EQ(bias.at(0, signed_offset), -0.5 * static_cast<double>(offset));
      EXPECT_EQ(bias.at(1, signed_offset), 3.0 * static_cast<double>(offset));
    }
}

TEST(OffsetBias, RunsOfOffsetsAreTheSameNumbers) {
  const OffsetBias bias{.name = "b",
                        .first = -2,
                        .count = 4,
                        .values = {1, 2, 4, 8, -1, -2, -4, -8},
                        .left_slope = {0.5, 3},
                        .right_slope = {}};
  for (const int64_t head : {0, 1})
    for (const int64_t offset : {-20, -6, -2, -1, 0, 1, 2, 9})
      for (const int64_t size : {0, 1, 3, 5, 30}) {
        std::vector<double> run(size, 100.0);
        bias.add_to(head, offset, size, run.data());
        for (int64_t n = 0; n < size; ++n) EXPECT_EQ(run[n], 100 + bias.at(head, offset + n));
      }
}

TEST(Alibi, BadFieldsAreRefusedByName) {
  const auto message = [](const AlibiConfig& config) {
    return message_of([&] { Alibi alibi(config); });
  };
  EXPECT_EQ(message({.heads = 0, .head_dim = 8, .slopes = {}}),
            "[alibi] heads must be >= 1, got 0");
  EXPECT_EQ(message({.heads = 3, .head_dim = 8, .slopes = {1, 2}}),
            "[alibi] slopes has 2 entries but there are 3 heads");
  EXPECT_EQ(message({.heads = 2, .head_dim = 8, .slopes = {1, INFINITY}}),
            "[alibi] slopes[1] must be finite, got inf");
}

}  // namespace
}  // namespace locant
