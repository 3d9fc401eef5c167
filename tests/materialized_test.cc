#include "locant/attention/materialized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "locant/attention/stats.h"
#include "locant/encodings/none/none.h"
#include "locant/encodings/registry.h"
#include "locant/encodings/shaw/shaw.h"
#include "locant/layers/attend.h"

namespace locant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A dense (B, H, L, d) of doubles with numbers in [-1, 1) from a small recurrence.
struct Tensor {
  std::vector<double> data;
  Extents shape;

  explicit Tensor(Extents extents, uint32_t seed = 0)
      : data(extents[0] * extents[1] * extents[2] * extents[3]), shape(extents) {
    uint32_t state = 2654435761u * (seed + 1);
    for (double& x : data) {
      state = state * 1664525u + 1013904223u;
      x = seed == 0 ? 0 : static_cast<double>(state >> 8) / (1 << 23) - 1;
    }
  }
  double& at(int64_t a, int64_t b, int64_t c, int64_t e) {
    return data[((a * shape[1] + b) * shape[2] + c) * shape[3] + e];
  }
  View all() { return view(data.data(), {shape[0], shape[1], shape[2], shape[3]}); }
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t n = 0; n < a.size(); ++n)
    if (!(a[n] == b[n])) worst = std::max(worst, std::abs(a[n] - b[n]));
  return worst;
}

int64_t integer(const Encoding& encoding, const char* name) {
  return std::get<int64_t>(encoding.fields().at(name));
}

TEST(Materialized, EqualsTheReferenceForEveryEncodingAndPositionIds) {
  for (const EncodingEntry& entry : encodings())
    for (const FieldValues& fields : entry.cases) {
      const auto encoding = make_encoding(entry.name, fields);
      encoding->init(2);
      const int64_t B = 2, H = integer(*encoding, "heads"), Lq = 9, Lk = 13;
      const int64_t G = H % 2 == 0 ? H / 2 : H, d = integer(*encoding, "head_dim");
      Tensor q({B, H, Lq, d}, 1), k({B, G, Lk, d}, 2), v({B, G, Lk, d}, 3);
      Tensor out({B, H, Lq, d}), lse({B, H, Lq, 1}), want = out, want_lse = lse;
      std::vector<int64_t> q_ids(B * Lq), k_ids(Lk);
      for (int64_t n = 0; n < B * Lq; ++n) q_ids[n] = (n * 37) % 101;
      for (int64_t n = 0; n < Lk; ++n) k_ids[n] = (n * 53) % 97;
      const int64_t lengths[] = {9, 6}, k_lengths[] = {10, 13};

      for (const bool own_positions : {false, true}) {
        AttendOptions options;
        options.lengths = lengths;
        options.k_lengths = k_lengths;
        options.left_padded = own_positions;
        options.window_left = 7;
        options.lse = view(lse.data.data(), {B, H, Lq});
        if (own_positions) {
          options.q_positions = view(q_ids.data(), {B, Lq});
          options.k_positions = view(k_ids.data(), {1, Lk});
        }
        const Materialized m =
            attend_materialized(q.all(), k.all(), v.all(), *encoding, options, {}, out.all());
        options.lse = view(want_lse.data.data(), {B, H, Lq});
        attend_reference(q.all(), k.all(), v.all(), *encoding, options, want.all());
        EXPECT_LT(largest_difference(out.data, want.data), 1e-13) << entry.name;
        EXPECT_LT(largest_difference(lse.data, want_lse.data), 1e-13) << entry.name;
        EXPECT_EQ(m.scores.at(0).first, "content");
      }
    }
}

TEST(Materialized, ScoresAndProbabilitiesExplainTheOutput) {
  const int64_t H = 2, L = 6, d = 4;
  Shaw shaw({.heads = H, .head_dim = d, .max_distance = 2, .values = false, .key_query = true});
  shaw.init(4);
  Tensor q({1, H, L, d}, 1), k({1, H, L, d}, 2), v({1, H, L, d}, 3), out({1, H, L, d});
  const Materialized m =
      attend_materialized(q.all(), k.all(), v.all(), shaw, {.causal = true}, {}, out.all());
  ASSERT_EQ(m.scores.size(), 3u);
  EXPECT_EQ(m.scores[1].first, "keys");
  EXPECT_EQ(m.scores[2].first, "keys_key");
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < L; ++i) {
      double sum = 0;
      std::vector<double> weight(L), o(d);
      for (int64_t j = 0; j <= i; ++j) {
        const int64_t at = (h * L + i) * L + j;
        weight[j] =
            std::exp(m.scores[0].second[at] + m.scores[1].second[at] + m.scores[2].second[at]);
        sum += weight[j];
      }
      for (int64_t j = 0; j < L; ++j) {
        EXPECT_NEAR(m.probabilities[(h * L + i) * L + j], weight[j] / sum, 1e-14);
        for (int64_t c = 0; c < d; ++c) o[c] += weight[j] / sum * v.at(0, h, j, c);
      }
      for (int64_t c = 0; c < d; ++c) EXPECT_NEAR(out.at(0, h, i, c), o[c], 1e-14);
    }
}

TEST(Materialized, TalkingHeadsMixLogitsAndThenProbabilities) {
  const int64_t H = 3, L = 4, d = 2;
  const None none({.heads = H, .head_dim = d});
  Tensor q({1, H, L, d}, 1), k({1, H, L, d}, 2), v({1, H, L, d}, 3), out({1, H, L, d});
  Tensor mixed = out;
  Tensor logits({1, 1, H, H}, 5), probabilities({1, 1, H, H}, 6);
  const MaterializedOptions talking{
      .talking_logits = view(logits.data.data(), {H, H}),
      .talking_probabilities = view(probabilities.data.data(), {H, H})};
  const auto plain = attend_materialized(q.all(), k.all(), v.all(), none, {}, {}, out.all());
  attend_materialized(q.all(), k.all(), v.all(), none, {.causal = true}, talking, mixed.all());
  const std::vector<double>& content = plain.scores[0].second;  // (H, L, L)
  for (int64_t i = 0; i < L; ++i) {
    std::vector<double> p(H * L);  // (H, keys) after mixing logits, masking and softmax
    for (int64_t g = 0; g < H; ++g) {
      double sum = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (int64_t h = 0; h < H; ++h)
          score += logits.at(0, 0, g, h) * content[(h * L + i) * L + j];
        sum += p[g * L + j] = std::exp(score);
      }
      for (int64_t j = 0; j <= i; ++j) p[g * L + j] /= sum;
    }
    for (int64_t g = 0; g < H; ++g)
      for (int64_t c = 0; c < d; ++c) {
        double o = 0;
        for (int64_t j = 0; j <= i; ++j)
          for (int64_t h = 0; h < H; ++h)
            o += probabilities.at(0, 0, g, h) * p[h * L + j] * v.at(0, g, j, c);
        EXPECT_NEAR(mixed.at(0, g, i, c), o, 1e-14);
      }
  }
}

TEST(Materialized, HiddenNaNsDoNotLeakAndLiveOnesShow) {
  const int64_t L = 5, d = 3;
  const None none({.heads = 1, .head_dim = d});
  Tensor q({1, 1, L, d}, 1), k({1, 1, L, d}, 2), v({1, 1, L, d}, 3), out({1, 1, L, d});
  k.at(0, 0, 3, 1) = NAN;
  v.at(0, 0, 3, 2) = kInfinity;
  attend_materialized(q.all(), k.all(), v.all(), none, {.causal = true}, {}, out.all());
  for (int64_t i = 0; i < L; ++i)
    for (int64_t c = 0; c < d; ++c) EXPECT_EQ(std::isnan(out.at(0, 0, i, c)), i >= 3) << i;
}

TEST(Materialized, QueriesThatSeeNothingGiveZerosAndMinusInfinity) {
  const int64_t L = 3, d = 2;
  const None none({.heads = 1, .head_dim = d});
  Tensor q({1, 1, L, d}, 1), k({1, 1, L, d}, 2), v({1, 1, L, d}, 3), out({1, 1, L, d}, 9);
  Tensor lse({1, 1, L, 1});
  const double mask[] = {0, 0, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 1, 0, 0};  // (3, 3)
  AttendOptions options;
  options.mask = view(mask, {3, 3});
  options.lse = view(lse.data.data(), {1, 1, L});
  const auto m = attend_materialized(q.all(), k.all(), v.all(), none, options, {}, out.all());
  for (int64_t c = 0; c < d; ++c) EXPECT_EQ(out.at(0, 0, 1, c), 0);
  EXPECT_EQ(lse.data[1], -kInfinity);
  EXPECT_EQ(m.probabilities[2], 0);
  // The additive mask is no score of the encoding, but counts in the softmax.
  const auto& s = m.scores[0].second;
  EXPECT_NEAR(lse.data[2], std::log(std::exp(s[6] + 1) + std::exp(s[7]) + std::exp(s[8])), 1e-14);
}

TEST(Materialized, TalkingMatricesMustFit) {
  const None none({.heads = 2, .head_dim = 2});
  Tensor q({1, 2, 3, 2}, 1), k = q, v = q, out({1, 2, 3, 2}), w({1, 1, 3, 3}, 1);
  try {
    attend_materialized(
        q.all(), k.all(), v.all(), none, {},
        {.talking_logits = view(w.data.data(), {3, 3}), .talking_probabilities = {}}, out.all());
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "[attend_materialized] talking_logits has shape (3, 3) but must be (2, 2)");
  }
}

TEST(Attend, ChoosesThePathByThePositions) {
  const int64_t L = 4, d = 2;
  Shaw shaw({.head_dim = d});
  shaw.init(1);
  const None none({.head_dim = d});
  Tensor q({1, 1, L, d}, 1), k = q, v = q, out({1, 1, L, d});
  const int64_t ids[] = {4, 0, 9, 1};
  AttendOptions options;
  const auto materialized_calls = [&](const Encoding& encoding) {
    const int64_t before = stats().materialized_calls;
    attend(q.all(), k.all(), v.all(), encoding, options, out.all());
    return stats().materialized_calls - before;
  };
  EXPECT_EQ(materialized_calls(shaw), 0);
  options.q_positions = options.k_positions = view(ids, {1, L});
  EXPECT_EQ(materialized_calls(shaw), 1);
  EXPECT_EQ(materialized_calls(none), 0);
}

// softmax(q·kᵀ/√d) by hand, for two causal sequences that stand in one row of the batch.
TEST(Attend, GivesTheProbabilitiesOfEachSequence) {
  const int64_t H = 2, L = 9, d = 4;
  Tensor q({1, H, L, d}, 1), k({1, 1, L, d}, 2), v({1, 1, L, d}, 3), out({1, H, L, d}), plain = out;
  const Sequence sequences[] = {{.q_begin = 0, .q_len = 4, .k_begin = 0, .k_len = 4},
                                {.q_begin = 4, .q_len = 5, .k_begin = 4, .k_len = 5}};
  const None none({.heads = H, .head_dim = d});
  std::vector<locant::Tensor> probabilities(1);  // what is there stays
  AttendOptions options;
  options.sequences = sequences;
  options.causal = true;
  attend(q.all(), k.all(), v.all(), none, options, plain.all());
  options.probabilities = &probabilities;
  attend(q.all(), k.all(), v.all(), none, options, out.all());
  EXPECT_EQ(out.data, plain.data);
  ASSERT_EQ(probabilities.size(), 3u);
  for (size_t n = 0; n < 2; ++n) {
    const Sequence& s = sequences[n];
    const ConstView p = std::as_const(probabilities[n + 1]).view();
    ASSERT_EQ(shape_text(p), shape_text(view(v.data.data(), {H, s.q_len, s.k_len})));
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < s.q_len; ++i) {
        std::vector<double> weights(s.k_len, 0.0);
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (int64_t c = 0; c < d; ++c)
            score += q.at(0, h, s.q_begin + i, c) * k.at(0, 0, s.k_begin + j, c) / 2;
          sum += weights[j] = std::exp(score);
        }
        for (int64_t j = 0; j < s.k_len; ++j)
          EXPECT_NEAR(*p.at<float>(h, i, j), weights[j] / sum, 1e-7);
      }
  }
}

}  // namespace
}  // namespace locant
