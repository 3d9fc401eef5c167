// The plain-loop references against values worked out from the papers and the released code, not
// from locant: bucket tables by way of scores, Shaw's index matrix, DeBERTa's sum of four products.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "locant/check/random.h"
#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"

namespace locant {
namespace {

// One head of size 1, every q and k equal to 1: the score of a term is then the table entry itself.
ReferenceProblem<double> ones(std::vector<int64_t> q_pos, std::vector<int64_t> k_pos) {
  ReferenceProblem<double> p;
  p.heads = p.kv_heads = p.head_dim = p.value_dim = 1;
  p.q_len = static_cast<int64_t>(q_pos.size());
  p.k_len = static_cast<int64_t>(k_pos.size());
  p.q.assign(p.q_len, 1);
  p.k.assign(p.k_len, 1);
  p.v.assign(p.k_len, 0);
  p.allowed.assign(p.q_len * p.k_len, 1);
  p.q_pos = std::move(q_pos);
  p.k_pos = std::move(k_pos);
  return p;
}

// The table row that an offset pos(j) - pos(i) takes: entry n of every table is n, so the score of
// `term` is the row's number.
int64_t row_at(const std::string& name, FieldValues fields, const std::string& term,
               int64_t offset) {
  fields["heads"] = int64_t{1};
  fields["head_dim"] = int64_t{1};
  const auto encoding = make_encoding(name, fields);
  ReferenceProblem<double> p = ones({1000}, {1000 + offset});
  for (const Parameter& parameter : encoding->parameters()) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    std::vector<double>& table = p.parameters[parameter.name];
    for (int64_t n = 0; n < size; ++n) table.push_back(static_cast<double>(n));
  }
  ReferenceResult<double> r;
  encoding->reference(p, r);
  return std::lround(r.scores.at(term)[0]);
}

using Values = std::vector<std::pair<int64_t, int64_t>>;  // offset or distance -> row

TEST(T5ReferenceTest, BidirectionalBuckets) {
  const Values checks = {{-300, 15}, {-91, 15}, {-64, 14}, {-33, 12}, {-16, 10},
                         {-15, 9},   {-8, 8},   {-1, 1},   {0, 0},    {1, 17},
                         {8, 24},    {16, 26},  {64, 30},  {128, 31}};
  for (const auto& [offset, bucket] : checks)
    EXPECT_EQ(row_at("t5", {}, "bias", offset), bucket) << offset;
}

TEST(T5ReferenceTest, CausalBuckets) {
  const Values checks = {{-300, 31}, {-91, 29}, {-64, 26}, {-33, 21}, {-16, 16},
                         {-15, 15},  {-1, 1},   {0, 0},    {5, 0}};
  for (const auto& [offset, bucket] : checks)
    EXPECT_EQ(row_at("t5", {{"bidirectional", false}}, "bias", offset), bucket) << offset;
}

TEST(T5ReferenceTest, LogarithmsAreFloat32AsReleased) {
  const FieldValues fields = {
      {"bidirectional", false}, {"num_buckets", int64_t{36}}, {"max_distance", int64_t{32}}};
  EXPECT_EQ(row_at("t5", fields, "bias", -24), 27);
}

// d = 1 and f = 1, so that s = 1 and the c2p score is the slot.
int64_t slot_at(FieldValues fields, int64_t distance) {
  fields["scale_factor"] = int64_t{1};
  return row_at("deberta", fields, "c2p", -distance);
}

TEST(DebertaReferenceTest, LogBucketSlots) {
  const Values checks = {{0, 256},   {128, 384}, {200, 425},  {256, 448}, {300, 463}, {400, 489},
                         {511, 511}, {600, 511}, {-128, 128}, {-511, 1},  {-600, 0}};
  for (const auto& [distance, slot] : checks) EXPECT_EQ(slot_at({}, distance), slot) << distance;
}

// In exact arithmetic 32 and 64 lie on bucket edges, and float64 puts them one slot further out.
TEST(DebertaReferenceTest, LogarithmsAreFloat32AsReleased) {
  const FieldValues fields = {{"position_buckets", int64_t{32}},
                              {"max_relative_positions", int64_t{129}}};
  const Values checks = {{-64, 6}, {-32, 11}, {32, 53}, {64, 58}};
  for (const auto& [distance, slot] : checks)
    EXPECT_EQ(slot_at(fields, distance), slot) << distance;
}

TEST(DebertaReferenceTest, FarDistancesAreClampedOnRequest) {
  EXPECT_EQ(slot_at({{"far", std::string("clamp")}}, -600), 1);
  EXPECT_EQ(slot_at({{"far", std::string("clamp")}}, 600), 511);
}

TEST(DebertaReferenceTest, PositionToContentUsesTheSlotOfContentToPosition) {
  for (const int64_t distance : {-600, -200, 0, 3, 300})
    EXPECT_EQ(row_at("deberta", {{"scale_factor", int64_t{1}}}, "p2c", -distance),
              slot_at({}, distance));
}

TEST(DebertaReferenceTest, WithoutBucketsTheTwoLargestDistancesShareASlot) {
  const FieldValues v1 = {{"position_buckets", int64_t{0}}, {"max_relative_positions", int64_t{8}}};
  const Values checks = {{-9, 0}, {-8, 0}, {-7, 1}, {0, 8}, {7, 15}, {8, 15}};
  for (const auto& [distance, slot] : checks) EXPECT_EQ(slot_at(v1, distance), slot) << distance;
}

TEST(ShawReferenceTest, ReversedIndexMatrix) {
  const auto shaw = make_encoding("shaw", {{"heads", int64_t{1}},
                                           {"head_dim", int64_t{1}},
                                           {"max_distance", int64_t{3}},
                                           {"values", false},
                                           {"clip", false},
                                           {"reversed", true}});
  ReferenceProblem<double> p = ones({0, 1, 2, 3}, {0, 1, 2, 3});
  p.parameters["keys"] = {0, 1, 2, 3, 4, 5, 6};
  ReferenceResult<double> r;
  shaw->reference(p, r);
  EXPECT_EQ(r.scores.at("keys"),
            (std::vector<double>{3, 2, 1, 0, 4, 3, 2, 1, 5, 4, 3, 2, 6, 5, 4, 3}));
}

TEST(ShawReferenceTest, DistancesAreClippedToTheLastRows) {
  const FieldValues fields = {{"max_distance", int64_t{2}}};
  const Values checks = {{-9, 0}, {-2, 0}, {-1, 1}, {0, 2}, {1, 3}, {2, 4}, {9, 4}};
  for (const auto& [offset, row] : checks)
    EXPECT_EQ(row_at("shaw", fields, "keys", offset), row) << offset;
}

TEST(ShawReferenceTest, ADistanceBeyondAnUnclippedTableIsAnError) {
  const FieldValues fields = {{"max_distance", int64_t{3}}, {"clip", false}};
  EXPECT_EQ(row_at("shaw", fields, "keys", 3), 6);
  EXPECT_THROW(row_at("shaw", fields, "keys", 4), std::invalid_argument);
}

// Two keys and a uniform softmax: O = ((v_0 + aV[k]) + (v_1 + aV[k+1]))/2.
TEST(ShawReferenceTest, ValuesAreAddedUnderTheProbabilities) {
  const auto shaw = make_encoding(
      "shaw", {{"heads", int64_t{1}}, {"head_dim", int64_t{1}}, {"max_distance", int64_t{1}}});
  ReferenceProblem<double> p = ones({0}, {0, 1});
  p.v = {1, 2};
  p.parameters["keys"] = {0, 0, 0};
  p.parameters["values"] = {100, 20, 40};
  ReferenceResult<double> r;
  shaw->reference(p, r);
  EXPECT_DOUBLE_EQ(r.out[0], (1.0 + 20 + 2 + 40) / 2);
  EXPECT_DOUBLE_EQ(r.lse[0], 1 + std::log(2.0));
}

// With c2p, p2c and p2p on: S = s·<q_i + PQ[slot], k_j + PK[slot]>.
TEST(DebertaReferenceTest, FourTermsAreOneProductOfSums) {
  constexpr int64_t H = 2, L = 9, d = 5, S = 4;
  const auto deberta = make_encoding("deberta", {{"heads", H},
                                                 {"head_dim", d},
                                                 {"position_buckets", int64_t{0}},
                                                 {"max_relative_positions", S},
                                                 {"p2p", true}});
  Random random(3);
  const auto draw = [&](int64_t size) {
    std::vector<double> values(size);
    for (double& value : values) value = random.symmetric();
    return values;
  };
  ReferenceProblem<double> p;
  p.heads = p.kv_heads = H;
  p.q_len = p.k_len = L;
  p.head_dim = p.value_dim = d;
  p.q = draw(H * L * d);
  p.k = draw(H * L * d);
  p.v = draw(H * L * d);
  p.allowed.assign(H * L * L, 1);
  for (int64_t n = 0; n < L; ++n) {
    p.q_pos.push_back(n);
    p.k_pos.push_back(n);
  }
  const std::vector<double>& PK = p.parameters["pos_key"] = draw(H * 2 * S * d);
  const std::vector<double>& PQ = p.parameters["pos_query"] = draw(H * 2 * S * d);
  ReferenceResult<double> r;
  deberta->reference(p, r);
  const double s = 1 / std::sqrt(4.0 * d);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < L; ++i)
      for (int64_t j = 0; j < L; ++j) {
        const int64_t slot = std::clamp<int64_t>(i - j + S, 0, 2 * S - 1);
        double product = 0;
        for (int64_t c = 0; c < d; ++c)
          product += (p.query(h, i)[c] + PQ[(h * 2 * S + slot) * d + c]) *
                     (p.key(h, j)[c] + PK[(h * 2 * S + slot) * d + c]);
        double sum = 0;
        for (const auto& [name, scores] : r.scores) sum += scores[(h * L + i) * L + j];
        EXPECT_NEAR(sum, s * product, 1e-14) << h << ' ' << i << ' ' << j;
      }
}

// Keys 0 and 1 of a batch row, query 1 in no sequence, query 0 alone: worked out by hand.
TEST(AttendReferenceTest, PaddingAndEmptyRowsGiveZerosAndMinusInfinity) {
  const std::vector<double> q = {0, 0, 7}, k = {0, 0, 7}, v = {3, 5, 1000};
  std::vector<double> out(3, 99), lse(3, 99);
  const std::vector<int64_t> lengths = {2};
  const auto mask = std::to_array<bool>({true, true, true, false, false, false, true, true, true});
  const auto none = make_encoding("none", {{"heads", int64_t{1}}, {"head_dim", int64_t{1}}});
  AttendOptions options;
  options.lengths = lengths;
  options.mask = view(mask.data(), {1, 1, 3, 3});
  options.lse = view(lse.data(), {1, 1, 3});
  const auto tensor = [](const std::vector<double>& x) { return view(x.data(), {1, 1, 3, 1}); };
  attend_reference(tensor(q), tensor(k), tensor(v), *none, options, view(out.data(), {1, 1, 3, 1}));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(out, (std::vector<double>{4, 0, 0}));
  EXPECT_EQ(lse, (std::vector<double>{std::log(2.0), -infinity, -infinity}));
}

TEST(AttendReferenceTest, PositionIdsReplaceCountedPositions) {
  const auto t5 = make_encoding("t5", {{"heads", int64_t{1}}, {"head_dim", int64_t{1}}});
  std::vector<double> bias(32);
  bias[15] = std::log(3.0);  // what lies 100 behind counts three times
  t5->set("bias", view(bias.data(), {32, 1}));
  const std::vector<double> q = {0}, k = {0, 0}, v = {8, 4};
  const std::vector<int64_t> q_positions = {500}, k_positions = {400, 500};
  std::vector<double> out(1);
  AttendOptions options;
  options.q_positions = view(q_positions.data(), {1, 1});
  options.k_positions = view(k_positions.data(), {1, 2});
  attend_reference(view(q.data(), {1, 1, 1, 1}), view(k.data(), {1, 1, 2, 1}),
                   view(v.data(), {1, 1, 2, 1}), *t5, options, view(out.data(), {1, 1, 1, 1}));
  EXPECT_NEAR(out[0], (3 * 8 + 4) / 4.0, 1e-14);
}

}  // namespace
}  // namespace locant
