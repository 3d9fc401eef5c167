// The parts of absolute scores, and the shift check, against what they say about themselves.
#include "locant/layers/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "locant/check/random.h"
#include "locant/encodings/learned/learned.h"
#include "locant/encodings/registry.h"
#include "locant/encodings/sinusoidal/sinusoidal.h"
#include "tests/message_of.h"

namespace locant {
namespace {

template <class Real>
std::vector<Real> random_values(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<Real> values(size);
  for (Real& value : values) value = static_cast<Real>(random.symmetric());
  return values;
}

TEST(AbsoluteScores, FourPartsAreThoseOfTheFormulaAndSumToTheWholeScore) {
  const int64_t B = 2, Lq = 5, Lk = 7, H = 4, G = 2, d = 3, D = 6;
  Learned encoding({.heads = H, .head_dim = d, .dim = D, .max_len = 40});
  encoding.init(5);
  const auto x_q = random_values<float>(B * Lq * D, 1), x_k = random_values<float>(B * Lk * D, 2);
  const auto w_q = random_values<float>(H * d * D, 3), w_k = random_values<float>(G * d * D, 4);
  const AbsoluteScores parts =
      absolute_scores(view(x_q.data(), {B, Lq, D}), view(x_k.data(), {B, Lk, D}), encoding,
                      view(w_q.data(), {H * d, D}), view(w_k.data(), {G * d, D}),
                      {.query = {.start = 20}, .key = {.start = 3}});

  const ConstView table = encoding.parameter("table");
  // (W a)[n] with a[c] from x, from the table, or the sum of both.
  const auto project = [&](const std::vector<float>& w, int64_t n, const float* x, int64_t row,
                           bool content, bool position) {
    double sum = 0;
    for (int64_t c = 0; c < D; ++c)
      sum += w[n * D + c] * ((content ? x[c] : 0.0) + (position ? element(table, row, c) : 0.0));
    return sum;
  };
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < Lq; ++i)
        for (int64_t j = 0; j < Lk; ++j) {
          const auto score = [&](bool q_content, bool q_position, bool k_content, bool k_position) {
            double sum = 0;
            for (int64_t c = 0; c < d; ++c)
              sum +=
                  project(w_q, h * d + c, &x_q[(b * Lq + i) * D], 20 + i, q_content, q_position) *
                  project(w_k, h / 2 * d + c, &x_k[(b * Lk + j) * D], 3 + j, k_content, k_position);
            return sum / std::sqrt(static_cast<double>(d));
          };
          const int64_t at = ((b * H + h) * Lq + i) * Lk + j;
          EXPECT_NEAR(parts.content_content[at], score(true, false, true, false), 1e-12);
          EXPECT_NEAR(parts.content_position[at], score(true, false, false, true), 1e-12);
          EXPECT_NEAR(parts.position_content[at], score(false, true, true, false), 1e-12);
          EXPECT_NEAR(parts.position_position[at], score(false, true, false, true), 1e-12);
          EXPECT_NEAR(parts.content_content[at] + parts.content_position[at] +
                          parts.position_content[at] + parts.position_position[at],
                      score(true, true, true, true), 1e-12);
        }
}

TEST(AbsoluteScores, WrongArgumentsAreNamed) {
  const Sinusoidal encoding({.heads = 2, .head_dim = 3});
  const std::vector<float> x(12), w(36);
  const auto message = [&](const Encoding& by, const ConstView& tokens, const ConstView& weights) {
    return message_of([&] { absolute_scores(tokens, tokens, by, weights, weights, {}); });
  };
  const ConstView tokens = view(x.data(), {1, 2, 6}), weights = view(w.data(), {6, 6});
  EXPECT_EQ(message(*make_encoding("none", {}), tokens, weights),
            "[absolute_scores] none adds nothing to the input, so its scores have other parts: see "
            "attend_materialized()");
  EXPECT_EQ(message(encoding, view(x.data(), {1, 3, 4}), weights),
            "[absolute_scores] x_q must be (B, L, 6), got shape (1, 3, 4)");
  EXPECT_EQ(message(encoding, tokens, view(w.data(), {4, 6})),
            "[absolute_scores] w_q must be (heads·3, 6), got shape (4, 6)");
  EXPECT_EQ(message(encoding, tokens, view(w.data(), {3, 6})),
            "[sinusoidal] the encoding has 2 heads but q has 1");
}

// Relative encodings may change by the rounding of float32, absolute ones must change by far more.
TEST(ShiftInvariance, TellsRelativeEncodingsFromAbsoluteOnes) {
  const int64_t B = 2, H = 2, L = 30, d = 16;
  const auto q = random_values<float>(B * H * L * d, 1), k = random_values<float>(B * H * L * d, 2);
  const std::vector<int64_t> shifts = {1, 17, 400};
  for (const EncodingEntry& entry : encodings()) {
    const std::unique_ptr<Encoding> encoding = entry.make({{"heads", H}, {"head_dim", d}});
    encoding->init(1);
    const std::vector<ShiftChange> changes = shift_invariance(
        view(q.data(), {B, H, L, d}), view(k.data(), {B, H, L, d}), *encoding, {}, shifts);
    ASSERT_EQ(changes.size(), 3u);
    for (size_t n = 0; n < shifts.size(); ++n) {
      EXPECT_EQ(changes[n].shift, shifts[n]);
      EXPECT_GT(changes[n].largest_score, 1) << entry.name;
      if (encoding->embed_dim() > 0)
        EXPECT_GT(changes[n].worst_change, 1e-2) << entry.name;
      else
        EXPECT_LT(changes[n].worst_change, 2e-5) << entry.name;
    }
  }
}

TEST(ShiftInvariance, ChangeOfAnAbsoluteEncodingIsThatOfItsFourParts) {
  const int64_t H = 2, L = 9, d = 4, D = 8, shift = 5;
  const Sinusoidal encoding({.heads = H, .head_dim = d});
  const auto x = random_values<double>(L * D, 1), y = random_values<double>(L * D, 2);
  std::vector<double> identity(D * D, 0.0);
  for (int64_t n = 0; n < D; ++n) identity[n * D + n] = 1;
  const ConstView w = view(std::as_const(identity).data(), {D, D});
  const auto whole = [&](int64_t start) {
    AbsoluteScores parts =
        absolute_scores(view(x.data(), {1, L, D}), view(y.data(), {1, L, D}), encoding, w, w,
                        {.query = {.start = start}, .key = {.start = start}});
    for (size_t n = 0; n < parts.content_content.size(); ++n)
      parts.content_content[n] +=
          parts.content_position[n] + parts.position_content[n] + parts.position_position[n];
    return parts.content_content;
  };
  const std::vector<double> before = whole(0), after = whole(shift);
  double worst = 0;
  for (size_t n = 0; n < before.size(); ++n)
    worst = std::max(worst, std::abs(after[n] - before[n]));

  const int64_t shape[] = {1, H, L, d}, strides[] = {L * D, d, D, 1};
  const std::vector<ShiftChange> changes = shift_invariance(
      ConstView(x.data(), DType::f64, shape, strides),
      ConstView(y.data(), DType::f64, shape, strides), encoding, {}, std::vector{shift});
  EXPECT_NEAR(changes[0].worst_change, worst, 1e-12);
}

TEST(ShiftInvariance, SequencesAndPositionIdsShiftToo) {
  const int64_t H = 1, L = 12, d = 8;
  const Sinusoidal encoding({.heads = H, .head_dim = d});
  const auto q = random_values<double>(H * L * d, 1);
  const ConstView x = view(q.data(), {1, H, L, d});
  const std::vector<int64_t> shifts = {7};
  const double plain = shift_invariance(x, x, encoding, {}, shifts)[0].worst_change;
  EXPECT_GT(plain, 0.1);

  std::vector<int64_t> ids(L);
  std::iota(ids.begin(), ids.end(), 0);
  AttendOptions by_ids;
  by_ids.q_positions = by_ids.k_positions = view(std::as_const(ids).data(), {1, L});
  EXPECT_EQ(shift_invariance(x, x, encoding, by_ids, shifts)[0].worst_change, plain);

  const std::vector<Sequence> all = {{.q_len = L, .k_len = L}};
  AttendOptions by_sequences;
  by_sequences.sequences = all;
  EXPECT_EQ(shift_invariance(x, x, encoding, by_sequences, shifts)[0].worst_change, plain);
}

TEST(ShiftInvariance, OnlyVisiblePairsCountAndNanIsNotHidden) {
  const int64_t H = 1, L = 6, d = 8;
  const Sinusoidal encoding({.heads = H, .head_dim = d});
  auto q = random_values<double>(H * L * d, 1);
  q[0] = std::numeric_limits<double>::quiet_NaN();  // in token 0
  const ConstView x = view(std::as_const(q).data(), {1, H, L, d});
  const std::vector<int64_t> shifts = {1};
  EXPECT_TRUE(std::isnan(shift_invariance(x, x, encoding, {}, shifts)[0].worst_change));
  const std::vector<Sequence> others = {
      {.q_begin = 1, .q_len = L - 1, .k_begin = 1, .k_len = L - 1}};
  AttendOptions options;
  options.sequences = others;
  EXPECT_GT(shift_invariance(x, x, encoding, options, shifts)[0].worst_change, 0);
}

TEST(ShiftInvariance, KeysAtTwoPositionsAreRefusedForInputs) {
  const std::vector<float> values(24);
  const ConstView x = view(values.data(), {1, 1, 6, 4});
  const std::vector<Sequence> sharing = {{.q_len = 3, .k_len = 6},
                                         {.q_begin = 3, .q_len = 3, .k_begin = 2, .k_len = 4}};
  AttendOptions options;
  options.sequences = sharing;
  const auto message = [&](const Encoding& encoding) {
    return message_of([&] { shift_invariance(x, x, encoding, options, std::vector<int64_t>{1}); });
  };
  EXPECT_EQ(message(*make_encoding("none", {{"head_dim", 4}})), "no error");
  EXPECT_EQ(message(Sinusoidal({.head_dim = 4})),
            "[shift_invariance] two sequences share row 2 of batch row 0: an input that sinusoidal "
            "is added to stands at one position");
}

TEST(ShiftInvariance, WrongArgumentsAreNamed) {
  const Sinusoidal encoding({.heads = 2, .head_dim = 4});
  const std::vector<float> values(24);
  const ConstView q = view(values.data(), {1, 2, 3, 4});
  const auto message = [&](const ConstView& k, int64_t shift) {
    return message_of([&] { shift_invariance(q, k, encoding, {}, std::vector{shift}); });
  };
  EXPECT_EQ(message(q, std::numeric_limits<int64_t>::min()),
            "[shift_invariance] shift -9223372036854775808 is beyond ±2^60");
  EXPECT_EQ(message(view(values.data(), {1, 1, 3, 4}), 1),
            "[shift_invariance] sinusoidal is added to inputs of width 8 but k has shape (1, 1, 3, "
            "4): heads·head_dim must be 8");
}

}  // namespace
}  // namespace locant
