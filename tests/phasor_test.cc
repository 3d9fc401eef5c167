// Phasors against long double, and against themselves in another order.
#include "locant/encodings/phasor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace locant {
namespace {

constexpr int64_t kPairs = 16;

std::vector<double> frequencies() {
  std::vector<double> theta;
  for (int64_t t = 0; t < kPairs; ++t) theta.push_back(std::pow(10000.0, -t / double(kPairs)));
  return theta;
}

template <class Real>
struct Row {
  std::vector<Real> cosine = std::vector<Real>(kPairs), sine = std::vector<Real>(kPairs);
  bool operator==(const Row&) const = default;
};

template <class Real>
Row<Real> row_at(Phasors::Walk& walk, int64_t position) {
  Row<Real> row;
  walk.row(position, row.cosine.data(), row.sine.data());
  return row;
}

// Largest difference from long double, whose angles keep 11 more bits.
template <class Real>
double worst_difference(int64_t position) {
  const std::vector<double> theta = frequencies();
  const Phasors phasors(theta);
  Phasors::Walk walk(phasors);
  const Row<Real> row = row_at<Real>(walk, position);
  long double worst = 0;
  for (int64_t t = 0; t < kPairs; ++t) {
    const long double angle = static_cast<long double>(position) * theta[t];
    worst = std::max({worst, std::abs(row.cosine[t] - std::cos(angle)),
                      std::abs(row.sine[t] - std::sin(angle))});
  }
  return static_cast<double>(worst);
}

TEST(Phasors, AreExactToFloat32UpToTwoToThe24AndBeyond) {
  for (const int64_t p : {0, 1, 63, 64, 1000, 8192, 1 << 20, (1 << 24) - 1, 1 << 24, (1 << 24) + 1,
                          1 << 30, -1, -64, -65, -(1 << 24)})
    EXPECT_LE(worst_difference<float>(p), 0x1.0001p-25) << p;  // half a unit in the last place
}

TEST(Phasors, AreExactToFloat64) {
  for (const int64_t p : {0, 1, 64, 1000, 8192, -77777})
    EXPECT_LE(worst_difference<double>(p), 5e-16) << p;
  // Here long double itself is right to 2^24·2^-64 only.
  for (const int64_t p : {(1 << 24) + 1, -(1 << 24)})
    EXPECT_LE(worst_difference<double>(p), 2e-12) << p;
}

TEST(Phasors, AnyOrderOfPositionsGivesTheSameBits) {
  const Phasors phasors(frequencies());
  Phasors::Walk up(phasors);
  std::vector<Row<float>> rows;
  for (int64_t p = -130; p < 130; ++p) rows.push_back(row_at<float>(up, p));
  Phasors::Walk jumping(phasors);
  for (int64_t n = 0; n < 260; ++n) {
    const int64_t at = n * 97 % 260;
    EXPECT_EQ(row_at<float>(jumping, at - 130), rows[at]) << at - 130;
  }
}

TEST(Phasors, GrowthCountsFromTheOriginAndMagnitudeMultiplies) {
  const std::vector<double> theta = frequencies(), growth(kPairs, -0.01);
  const Phasors phasors(theta, growth, 1.5);
  for (const int64_t p : {1000, 1063, 1064, 900, 100'000'000}) {
    const int64_t origin = p > 1'000'000 ? p - 7 : 1000;
    Phasors::Walk walk(phasors, origin);
    const Row<double> row = row_at<double>(walk, p);
    for (int64_t t = 0; t < kPairs; ++t) {
      const long double size = 1.5L * std::exp(-0.01L * (p - origin));
      const long double angle = static_cast<long double>(p) * theta[t];
      EXPECT_NEAR(row.cosine[t], size * std::cos(angle), 1e-11) << p << " pair " << t;
      EXPECT_NEAR(row.sine[t], size * std::sin(angle), 1e-11) << p << " pair " << t;
    }
  }
}

}  // namespace
}  // namespace locant
