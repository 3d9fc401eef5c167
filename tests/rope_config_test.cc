// RoPE: the frequencies of every scaling, and configurations that make no sense.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "locant/encodings/rope/rope.h"
#include "tests/message_of.h"

namespace locant {
namespace {

void expect_theta(const RopeConfig& config, int64_t length, const std::vector<double>& wanted) {
  const std::vector<double> theta = Rope(config).frequencies(length).theta;
  ASSERT_EQ(theta.size(), 32u);
  const int pairs[] = {0, 1, 15, 31};
  for (int n = 0; n < 4; ++n)
    EXPECT_NEAR(theta[pairs[n]], wanted[n], 5e-8 * wanted[n]) << config.scaling << " " << pairs[n];
}

TEST(RopeFrequencies, HaveTheKnownValues) {
  expect_theta({.scaling = "linear", .factor = 4}, 0,
               {0.25, 0.18747355, 0.0033338036, 3.3338036e-05});
  const RopeConfig dynamic{.scaling = "dynamic", .factor = 2, .original_max_position = 2048};
  expect_theta(dynamic, 4096, {1, 0.72378402, 0.0078367299, 4.4450714e-05});
  const std::vector<double> unscaled = {1, std::pow(10000, -1 / 32.), std::pow(10000, -15 / 32.),
                                        std::pow(10000, -31 / 32.)};
  expect_theta(dynamic, 2048, unscaled);
  expect_theta(dynamic, 5, unscaled);
  const RopeConfig yarn{.scaling = "yarn", .factor = 4, .original_max_position = 2048};
  expect_theta(yarn, 0, {1, 0.7498942, 0.0079498393, 3.3338036e-05});
  EXPECT_NEAR(Rope(yarn).frequencies(0).magnitude, 1.1386294, 1e-7);
  expect_theta({.base = 5e5, .scaling = "llama3", .factor = 8, .original_max_position = 8192}, 0,
               {1, 0.66360124, 0.0013718936, 3.7673227e-07});
  // The last pair is slowed by exactly s: base'^(-(rot-2)/rot) = base^(-(rot-2)/rot) / s.
  expect_theta({.scaling = "ntk", .factor = 8}, 0,
               {1, unscaled[1] * std::pow(8, -1 / 31.), unscaled[2] * std::pow(8, -15 / 31.),
                unscaled[3] / 8});
}

TEST(RopeFrequencies, LongropeTakesTheLongListBeyondTheOriginalLength) {
  const Rope rope({.head_dim = 4,
                   .scaling = "longrope",
                   .original_max_position = 100,
                   .max_position = 400,
                   .short_factor = {1, 2},
                   .long_factor = {4, 8}});
  EXPECT_EQ(rope.frequencies(100).theta, (std::vector<double>{1, 0.01 / 2}));
  EXPECT_EQ(rope.frequencies(101).theta, (std::vector<double>{0.25, 0.01 / 8}));
  EXPECT_NEAR(rope.frequencies(5).magnitude, std::sqrt(1 + std::log(4.) / std::log(100.)), 1e-15);
}

TEST(RopeFrequencies, ProportionalLeavesTheLastPairsAlone) {
  const Rope rope(
      {.head_dim = 8, .partial_rotary_factor = 0.6, .scaling = "proportional", .factor = 2});
  EXPECT_EQ(rope.frequencies(0).theta, (std::vector<double>{0.5, 0.05, 0, 0}));  // int(4.8 // 2)
}

std::string error_of(const RopeConfig& config) {
  return message_of([&] { Rope rope(config); });
}

TEST(RopeErrors, NameTheField) {
  const double nan = std::nan("");
  EXPECT_EQ(error_of({.scaling = "linear", .factor = 0}),
            "[rope] factor must be finite and > 0, got 0");
  EXPECT_EQ(error_of({.scaling = "linear", .factor = nan}),
            "[rope] factor must be finite and > 0, got nan");
  EXPECT_EQ(error_of({.base = 1}), "[rope] base must be finite and > 1, got 1");
  EXPECT_EQ(error_of({.head_dim = 7}),
            "[rope] the rotated columns int(head_dim·partial_rotary_factor) must be even and >= 2, "
            "got 7 of head_dim 7");
  EXPECT_EQ(error_of({.partial_rotary_factor = 1.5}),
            "[rope] partial_rotary_factor must be > 0 and <= 1, got 1.5");
  EXPECT_EQ(error_of({.layout = "both"}),
            "[rope] layout must be one of half, interleaved, got 'both'");
  EXPECT_EQ(error_of({.scaling = "su"}),
            "[rope] scaling must be one of none, linear, ntk, dynamic, yarn, llama3, longrope, "
            "proportional, xpos, got 'su'");
  EXPECT_EQ(error_of({.scaling = "yarn", .factor = 2}),
            "[rope] scaling 'yarn' needs original_max_position >= 2, got 0");
  EXPECT_EQ(error_of({.scaling = "yarn", .original_max_position = 64, .beta_fast = -1}),
            "[rope] beta_fast must be finite and > 0, got -1");
  EXPECT_EQ(error_of({.scaling = "llama3", .original_max_position = 64, .high_freq_factor = 1}),
            "[rope] high_freq_factor must be > low_freq_factor = 1, got 1");
  EXPECT_EQ(error_of({.head_dim = 8,
                      .scaling = "longrope",
                      .original_max_position = 64,
                      .short_factor = {1, 2}}),
            "[rope] short_factor must have 4 numbers, one for each pair, got 2");
  EXPECT_EQ(error_of({.head_dim = 8, .axes = "sections", .sections = {1, 2}}),
            "[rope] sections must add up to the 4 pairs, got 1,2 with sum 3");
  EXPECT_EQ(error_of({.head_dim = 8, .axes = "sections", .sections = {1.5, 2.5}}),
            "[rope] sections must be whole numbers >= 0, got 1.5");
  EXPECT_EQ(error_of({.head_dim = 8, .sections = {2, 2}}),
            "[rope] sections are for axes 'sections', but axes is '1d'");
  EXPECT_EQ(error_of({.head_dim = 8, .scaling = "linear", .axes = "2d_split"}),
            "[rope] axes '2d_split' has no scaling, got 'linear'");
  EXPECT_EQ(error_of({.head_dim = 6, .axes = "2d_split"}),
            "[rope] axes '2d_split' needs an even number of pairs, got 3");
}

}  // namespace
}  // namespace locant
