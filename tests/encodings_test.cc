#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "locant/encodings/deberta/deberta.h"
#include "locant/encodings/none/none.h"
#include "locant/encodings/registry.h"
#include "locant/encodings/shaw/shaw.h"
#include "locant/encodings/t5/t5.h"
#include "tests/message_of.h"

namespace locant {
namespace {

Problem problem_of(int64_t heads, int64_t head_dim, int64_t length = 4) {
  Problem p;
  p.batch = 1;
  p.heads = p.kv_heads = heads;
  p.q_len = p.k_len = length;
  p.head_dim = p.value_dim = head_dim;
  p.sequences = {{.q_len = length, .k_len = length}};
  return p;
}

Terms terms_of(const Encoding& encoding, const Problem& problem) {
  Terms terms = encoding.prepare(problem, ConstView(), ConstView()).terms;
  validate(terms, problem.heads, problem.head_dim, problem.value_dim);
  return terms;
}

// --- Shaw ---------------------------------------------------------------------------------------

// A table (2k+1, 1) whose rows hold their own number: what a term reads is the row it chose.
std::vector<float> numbered(int64_t rows) {
  std::vector<float> table(rows);
  std::iota(table.begin(), table.end(), 0.0f);
  return table;
}

double row_read(const ConstView& table, const RowMap& map, int64_t offset) {
  return element(table, 0, map.row(offset), 0);
}

TEST(Shaw, RowsAreClippedOffsetsFromTheMiddle) {
  const std::vector<float> table = numbered(9);
  Shaw shaw({.head_dim = 1, .max_distance = 4});
  shaw.set("keys", view(table.data(), {9, 1}));
  shaw.set("values", view(table.data(), {9, 1}));
  const Terms terms = terms_of(shaw, problem_of(1, 1, 32));
  const std::map<int64_t, int> rows = {{-30, 0}, {-5, 0}, {-4, 0}, {-1, 3}, {0, 4},
                                       {1, 5},   {4, 8},  {5, 8},  {30, 8}};
  ASSERT_EQ(terms.projections.size(), 1u);
  ASSERT_EQ(terms.values.size(), 1u);
  for (const auto& [offset, row] : rows) {
    EXPECT_EQ(row_read(terms.projections[0].table, terms.projections[0].map, offset), row);
    EXPECT_EQ(row_read(terms.values[0].table, terms.values[0].map, offset), row);
  }
  EXPECT_TRUE(has_unit_steps(terms.values[0].map));
}

TEST(Shaw, ReversedUnclippedIndexMatrixIsThatOfBert) {
  const std::vector<float> table = numbered(7);
  Shaw shaw({.head_dim = 1,
             .max_distance = 3,
             .values = false,
             .clip = false,
             .reversed = true,
             .key_query = true});
  shaw.set("keys", view(table.data(), {7, 1}));
  const Terms terms = terms_of(shaw, problem_of(1, 1, 4));
  const int expected[4][4] = {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}};
  ASSERT_EQ(terms.projections.size(), 2u);
  EXPECT_EQ(terms.projections[0].side, Side::query);
  EXPECT_EQ(terms.projections[1].side, Side::key);
  EXPECT_TRUE(terms.values.empty());
  for (const Projection& p : terms.projections)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) EXPECT_EQ(row_read(p.table, p.map, j - i), expected[i][j]);
}

TEST(Shaw, UnclippedRefusesLongerDistances) {
  Shaw shaw({.head_dim = 2, .max_distance = 3, .values = false, .clip = false});
  shaw.init(0);
  const Problem p = problem_of(1, 2, 5);
  EXPECT_EQ(message_of([&] { shaw.prepare(p, ConstView(), ConstView()); }),
            "[shaw] a key is 4 positions from its query but max_distance is 3 and clip is false");
}

TEST(Shaw, EveryTermHasOneOverRootD) {
  Shaw shaw({.heads = 3, .head_dim = 16, .per_head = true, .key_query = true});
  shaw.init(0);
  const Terms terms = terms_of(shaw, problem_of(3, 16));
  EXPECT_EQ(terms.scale, 0.25);
  for (const Projection& p : terms.projections) {
    EXPECT_EQ(p.scale, 0.25);
    EXPECT_EQ(p.table.shape, (Extents{3, 33, 16, 1}));
  }
}

TEST(Shaw, RelativeValuesNeedTheHeadsWidth) {
  Shaw shaw({.head_dim = 8});
  shaw.init(0);
  Problem p = problem_of(1, 8);
  p.value_dim = 6;
  EXPECT_EQ(message_of([&] { shaw.prepare(p, ConstView(), ConstView()); }),
            "[shaw] relative values have width 8 but v has 6");
}

TEST(Shaw, BadFieldsAreRefusedByName) {
  EXPECT_EQ(message_of([] { Shaw({.max_distance = 0}); }),
            "[shaw] max_distance must be >= 1, got 0");
  EXPECT_EQ(message_of([] { Shaw({.heads = 0}); }), "[shaw] heads must be >= 1, got 0");
  EXPECT_EQ(message_of([] { Shaw({.head_dim = -1}); }), "[shaw] head_dim must be >= 1, got -1");
}

// --- T5 -----------------------------------------------------------------------------------------

// The bucket that prepare() chose for each offset: tables hold bucket + 1000·head.
std::function<int64_t(int64_t)> buckets_of(const T5Config& config) {
  const int64_t heads = 2;
  std::vector<double> table;
  for (int64_t b = 0; b < config.num_buckets; ++b)
    for (int64_t h = 0; h < heads; ++h) table.push_back(static_cast<double>(b + 1000 * h));
  T5Config two = config;
  two.heads = heads;
  two.head_dim = 4;
  T5 t5(two);
  t5.set("bias", view(table.data(), {config.num_buckets, heads}));
  const OffsetBias bias = terms_of(t5, problem_of(heads, 4)).biases.at(0);
  return [bias](int64_t offset) {
    EXPECT_EQ(bias.at(1, offset), bias.at(0, offset) + 1000) << offset;
    return static_cast<int64_t>(bias.at(0, offset));
  };
}

void expect_buckets(const T5Config& config, const std::map<int64_t, int64_t>& expected) {
  const auto bucket = buckets_of(config);
  for (const auto& [offset, want] : expected) EXPECT_EQ(bucket(offset), want) << "at " << offset;
}

TEST(T5, BidirectionalBucketsAreThoseOfThePaper) {
  expect_buckets({}, {{-300, 15},
                      {-91, 15},
                      {-64, 14},
                      {-33, 12},
                      {-16, 10},
                      {-15, 9},
                      {-8, 8},
                      {-1, 1},
                      {0, 0},
                      {1, 17},
                      {8, 24},
                      {16, 26},
                      {64, 30},
                      {128, 31},
                      {1 << 20, 31}});
}

TEST(T5, CausalBucketsAreThoseOfThePaper) {
  expect_buckets({.bidirectional = false}, {{-300, 31},
                                            {-91, 29},
                                            {-64, 26},
                                            {-33, 21},
                                            {-16, 16},
                                            {-15, 15},
                                            {-1, 1},
                                            {0, 0},
                                            {5, 0},
                                            {1000, 0}});
}

TEST(T5, BucketEdgesAreThoseOfFloat32) {
  expect_buckets({.num_buckets = 36, .max_distance = 32, .bidirectional = false}, {{-24, 27}});
}

TEST(T5, DirectionsUseDifferentBuckets) {
  // 32 rows in all: 16 behind and 16 ahead, never an index beyond the table.
  const auto bucket = buckets_of({});
  for (int64_t n = 1; n < 300; ++n) {
    EXPECT_LT(bucket(-n), 16);
    EXPECT_EQ(bucket(n), bucket(-n) + 16);
  }
}

TEST(T5, ScaleIsOneUnlessSet) {
  T5 t5({.head_dim = 64});
  t5.init(0);
  EXPECT_EQ(terms_of(t5, problem_of(1, 64)).scale, 1.0);
  T5 mpnet({.head_dim = 64, .scale = 0.125});
  mpnet.init(0);
  EXPECT_EQ(terms_of(mpnet, problem_of(1, 64)).scale, 0.125);
}

TEST(T5, BadFieldsAreRefusedByName) {
  EXPECT_EQ(message_of([] { T5({.num_buckets = 3}); }),
            "[t5] num_buckets must be >= 4 if bidirectional, got 3");
  EXPECT_EQ(message_of([] { T5({.num_buckets = 1, .bidirectional = false}); }),
            "[t5] num_buckets must be >= 2 if not bidirectional, got 1");
  EXPECT_EQ(message_of([] { T5({.num_buckets = 32, .max_distance = 8}); }),
            "[t5] max_distance must be > 8, the distances with a bucket of their own, got 8");
  EXPECT_EQ(message_of([] { T5({.scale = NAN}); }), "[t5] scale must be finite and not 0, got nan");
}

// --- DeBERTa ------------------------------------------------------------------------------------

// The slot that prepare() chose for each r = pos(i) - pos(j), read through the reversed tables.
std::function<int64_t(int64_t)> slots_of(DebertaConfig config) {
  config.heads = config.head_dim = 1;
  config.c2p = config.p2c = true;
  Deberta deberta(config);
  const int64_t rows = deberta.parameters().at(0).shape[1];
  const std::vector<float> table = numbered(rows);
  deberta.set("pos_key", view(table.data(), {1, rows, 1}));
  deberta.set("pos_query", view(table.data(), {1, rows, 1}));
  // The tables' own memory is a local: keep the numbers, not the views.
  const Terms terms = terms_of(deberta, problem_of(1, 1));
  const Projection &c2p = terms.projections.at(0), &p2c = terms.projections.at(1);
  EXPECT_EQ(c2p.side, Side::query);
  EXPECT_EQ(p2c.side, Side::key);
  EXPECT_EQ(c2p.map.rows, p2c.map.rows);
  EXPECT_EQ(c2p.map.first, p2c.map.first);
  std::vector<int64_t> slots;
  for (int64_t row = 0; row < rows; ++row)
    slots.push_back(static_cast<int64_t>(element(c2p.table, 0, row, 0)));
  return [slots, map = c2p.map](int64_t r) { return slots[map.row(-r)]; };
}

void expect_slots(const DebertaConfig& config, const std::map<int64_t, int64_t>& expected) {
  const auto slot = slots_of(config);
  for (const auto& [r, want] : expected) EXPECT_EQ(slot(r), want) << "at " << r;
}

TEST(Deberta, LogBucketsAreThoseOfTheReleasedModels) {
  expect_slots({}, {{0, 256},
                    {1, 257},
                    {-1, 255},
                    {128, 384},
                    {200, 425},
                    {256, 448},
                    {300, 463},
                    {400, 489},
                    {511, 511},
                    {600, 511},
                    {-128, 128},
                    {-511, 1},
                    {-600, 0},
                    {-512, 0},
                    {1 << 20, 511},
                    {-(1 << 20), 0}});
}

TEST(Deberta, ClampedFarDistancesStopBeforeSlotZero) {
  expect_slots({.far = "clamp"}, {{-511, 1}, {-600, 1}, {-(1 << 20), 1}, {511, 511}, {600, 511}});
}

TEST(Deberta, ExactDistancesShareTheLastSlotOnly) {
  expect_slots({.position_buckets = 0, .max_relative_positions = 8},
               {{-9, 0}, {-8, 0}, {-7, 1}, {0, 8}, {6, 14}, {7, 15}, {8, 15}, {100, 15}});
}

// ln(|r|/mid)·(mid-1)/ln((M-1)/mid) by hand, in long double where float32 has no doubt.
TEST(Deberta, MapsAreExactInBothTails) {
  const int64_t b = 16, M = 64, mid = 8;
  const auto slot = slots_of({.position_buckets = b, .max_relative_positions = M});
  for (int64_t r = mid + 1; r < 400; ++r) {
    const long double steps =
        std::log(static_cast<long double>(r) / mid) / std::log(63.0L / mid) * (mid - 1);
    if (std::abs(steps - std::round(steps)) < 1e-5L) continue;
    const int64_t bucket = mid + static_cast<int64_t>(std::ceil(steps));
    EXPECT_EQ(slot(r), std::min(bucket + b, 2 * b - 1)) << r;
    EXPECT_EQ(slot(-r), std::max<int64_t>(b - bucket, 0)) << -r;
  }
}

TEST(Deberta, SteepBucketsAreKnownToStepByMoreThanOne) {
  Deberta gentle({.head_dim = 1}), steep({.head_dim = 1, .max_relative_positions = 160});
  gentle.init(0);
  steep.init(0);
  EXPECT_TRUE(has_unit_steps(terms_of(gentle, problem_of(1, 1)).projections.at(0).map));
  EXPECT_FALSE(has_unit_steps(terms_of(steep, problem_of(1, 1)).projections.at(0).map));
}

TEST(Deberta, ScaleCountsTheEnabledTerms) {
  const auto scale = [](DebertaConfig config) {
    config.head_dim = 4;
    Deberta deberta(config);
    deberta.init(0);
    const Terms terms = terms_of(deberta, problem_of(1, 4));
    for (const Projection& p : terms.projections) EXPECT_EQ(p.scale, terms.scale);
    return terms.scale;
  };
  EXPECT_DOUBLE_EQ(scale({}), 1 / std::sqrt(12.0));
  EXPECT_DOUBLE_EQ(scale({.p2c = false}), 1 / std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(scale({.p2p = true}), 1 / std::sqrt(16.0));
  EXPECT_DOUBLE_EQ(scale({.c2p = false, .p2c = false}), 0.5);
  EXPECT_DOUBLE_EQ(scale({.c2p = false, .p2c = false, .scale_factor = 3}), 1 / std::sqrt(12.0));
}

TEST(Deberta, OnlyNeededTablesAreParameters) {
  const auto names = [](const DebertaConfig& config) {
    const Deberta deberta(config);
    std::string text;
    for (const Parameter& p : deberta.parameters()) text += p.name + " ";
    return text;
  };
  EXPECT_EQ(names({}), "pos_key pos_query ");
  EXPECT_EQ(names({.p2c = false}), "pos_key ");
  EXPECT_EQ(names({.c2p = false}), "pos_query ");
  EXPECT_EQ(names({.c2p = false, .p2c = false}), "");
  EXPECT_EQ(names({.c2p = false, .p2c = false, .p2p = true}), "pos_key pos_query ");
}

// With all three terms the score is one product: s·<q + PQ[slot], k + PK[slot]>.
TEST(Deberta, AllFourTermsFactorise) {
  const int64_t H = 2, d = 6;
  Deberta deberta({.heads = H,
                   .head_dim = d,
                   .position_buckets = 8,
                   .max_relative_positions = 20,
                   .p2p = true});
  deberta.init(3);
  const auto slot = slots_of({.position_buckets = 8, .max_relative_positions = 20});
  const ConstView pk = deberta.parameter("pos_key"), pq = deberta.parameter("pos_query");
  const Terms terms = terms_of(deberta, problem_of(H, d));
  const std::vector<double> q = {1, -2, 0.5, 3, 0.25, -1}, k = {0.5, 1, -1, 2, 4, 0.125};
  for (int64_t h = 0; h < H; ++h)
    for (int64_t offset = -40; offset <= 40; ++offset) {
      double product = 0, sum = 0;
      for (int64_t c = 0; c < d; ++c) {
        const int64_t x = slot(-offset);
        product += (q[c] + element(pq, h, x, c)) * (k[c] + element(pk, h, x, c));
        sum += q[c] * k[c];
        for (const Projection& p : terms.projections)
          sum += (p.side == Side::query ? q : k)[c] * element(p.table, h, p.map.row(offset), c);
      }
      const double score = terms.scale * sum + terms.biases.at(0).at(h, offset);
      EXPECT_NEAR(score, product / std::sqrt(4.0 * d), 1e-14) << h << " " << offset;
    }
}

TEST(Deberta, BadFieldsAreRefusedByName) {
  EXPECT_EQ(message_of([] { Deberta({.position_buckets = 1}); }),
            "[deberta] position_buckets must be 0 or >= 2, got 1");
  EXPECT_EQ(message_of([] { Deberta({.position_buckets = 256, .max_relative_positions = 129}); }),
            "[deberta] max_relative_positions must be > 129 with position_buckets 256, got 129");
  EXPECT_EQ(message_of([] { Deberta({.max_relative_positions = 0}); }),
            "[deberta] max_relative_positions must be >= 1, got 0");
  EXPECT_EQ(message_of([] { Deberta({.far = "near"}); }),
            "[deberta] far must be one of hf, clamp, got 'near'");
  EXPECT_EQ(message_of([] { Deberta({.scale_factor = -1}); }),
            "[deberta] scale_factor must be >= 0, got -1");
  // 2·((2^20 - 1)/2)^2 positions until the last step of five buckets.
  EXPECT_NE(message_of([] {
              Deberta({.position_buckets = 5, .max_relative_positions = 1 << 20});
            }).find("use an even number of buckets or far=clamp"),
            std::string::npos);
}

// --- Every encoding -----------------------------------------------------------------------------

TEST(None, HasNoTerms) {
  const None none({.heads = 2, .head_dim = 25});
  const Terms terms = terms_of(none, problem_of(2, 25));
  EXPECT_EQ(terms.scale, 0.2);
  EXPECT_FALSE(terms.depend_on_positions());
  EXPECT_TRUE(none.parameters().empty());
}

TEST(Parameters, ShapesTypesAndNamesAreChecked) {
  const std::vector<float> table(33 * 8);
  const std::vector<int64_t> numbers(33 * 8);
  Shaw shaw({.head_dim = 8});
  EXPECT_EQ(message_of([&] {
              shaw.set("keys", view(table.data(), {8, 33}));
            }),
            "[shaw] keys has shape (8, 33) but must be (33, 8) (2·max_distance + 1, head_dim)");
  EXPECT_EQ(message_of([&] {
              shaw.set("keys", view(table.data(), {33, 8, 1}));
            }),
            "[shaw] keys has shape (33, 8, 1) but must be (33, 8) (2·max_distance + 1, head_dim)");
  EXPECT_EQ(message_of([&] {
              shaw.set("keys", view(numbers.data(), {33, 8}));
            }),
            "[shaw] keys must be f32, f64, f16 or bf16, got i64");
  EXPECT_EQ(message_of([&] {
              shaw.set("key", view(table.data(), {33, 8}));
            }),
            "[shaw] unknown parameter 'key'; known: keys, values");
  EXPECT_EQ(message_of([&] { shaw.parameter("keys"); }),
            "[shaw] parameter 'keys' (33, 8) has no values; give it some with set() or draw them "
            "with init()");
}

TEST(Parameters, SetKeepsAViewAndInitDrawsAnew) {
  std::vector<float> table(33 * 8, 1.0f);
  Shaw shaw({.head_dim = 8, .values = false});
  shaw.set("keys", view(table.data(), {33, 8}));
  table[5] = 42;
  EXPECT_EQ(shaw.parameter("keys").data, table.data());
  EXPECT_EQ(element(shaw.parameter("keys"), 0, 5), 42);
  shaw.init(1);
  EXPECT_NE(shaw.parameter("keys").data, table.data());
}

TEST(Parameters, CopiesOfAnEncodingOwnTheirDraws) {
  auto first = std::make_unique<Shaw>(ShawConfig{.head_dim = 8});
  first->init(1);
  const Shaw second = *first;
  const float before = *first->parameter("keys").at<float>(3, 3);
  EXPECT_NE(second.parameter("keys").data, first->parameter("keys").data);
  first.reset();
  EXPECT_EQ(*second.parameter("keys").at<float>(3, 3), before);
}

// The generator written out a second time, in Python: SplitMix64 on FNV-1a of the name.
TEST(Init, DrawsTheSameNumbersEverywhere) {
  Shaw shaw({.head_dim = 8});
  shaw.init(0);
  EXPECT_EQ(*shaw.parameter("keys").at<float>(0, 0), 0.0027673339936882257f);
  EXPECT_EQ(*shaw.parameter("keys").at<float>(0, 3), 0.011915283277630806f);
  shaw.init(7);
  EXPECT_EQ(*shaw.parameter("keys").at<float>(0, 1), -0.012593078427016735f);
}

TEST(Init, LooksNormal) {
  Shaw shaw({.head_dim = 64, .max_distance = 500});
  shaw.init(11);
  const ConstView keys = shaw.parameter("keys");
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0, n = 0;
  for (int64_t a = 0; a < keys.shape[0]; ++a)
    for (int64_t b = 0; b < keys.shape[1]; ++b, ++n) {
      const double x = element(keys, a, b) / 0.02;
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
      neighbours += x * last;
      last = x;
    }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourth / n, 3 - 0.1, 0.1);  // twelve uniforms: 3 - 1.2/12
  EXPECT_NEAR(neighbours / n, 0, 0.02);
}

TEST(Init, AParametersDrawsDoNotDependOnItsNeighbours) {
  Deberta both({.head_dim = 4}), alone({.head_dim = 4, .c2p = false});
  both.init(5);
  alone.init(5);
  EXPECT_EQ(element(both.parameter("pos_query"), 0, 7, 2),
            element(alone.parameter("pos_query"), 0, 7, 2));
  EXPECT_NE(element(both.parameter("pos_query"), 0, 7, 2),
            element(both.parameter("pos_key"), 0, 7, 2));
}

TEST(Prepare, HeadsAndWidthMustFitTheProblem) {
  const None none({.heads = 4, .head_dim = 8});
  EXPECT_EQ(message_of([&] { none.prepare(problem_of(2, 8), ConstView(), ConstView()); }),
            "[none] the encoding has 4 heads but q has 2");
  EXPECT_EQ(message_of([&] { none.prepare(problem_of(4, 16), ConstView(), ConstView()); }),
            "[none] the encoding has head_dim 8 but q has 16");
}

TEST(Registry, EveryCaseOfEveryEncodingCompilesToValidTerms) {
  for (const EncodingEntry& entry : encodings()) {
    EXPECT_FALSE(entry.cases.empty()) << entry.name;
    for (const FieldValues& fields : entry.cases) {
      const auto encoding = make_encoding(entry.name, fields);
      EXPECT_EQ(encoding->name(), entry.name);
      for (const auto& [name, value] : fields) EXPECT_EQ(encoding->fields().at(name), value);
      encoding->init(1);
      const Problem p = problem_of(std::get<int64_t>(encoding->fields().at("heads")),
                                   std::get<int64_t>(encoding->fields().at("head_dim")), 9);
      EXPECT_NO_THROW(terms_of(*encoding, p)) << entry.name;
    }
  }
}

TEST(Registry, UnknownNamesListTheKnownOnes) {
  std::string known;
  for (const EncodingEntry& entry : encodings()) known += (known.empty() ? "" : ", ") + entry.name;
  EXPECT_EQ(message_of([] { find_encoding("rope2"); }),
            "[encodings] unknown encoding 'rope2'; known: " + known);
  EXPECT_EQ(message_of([] {
              make_encoding("t5", {{"buckets", 3}});
            }),
            "[t5] unknown field 'buckets'; known: heads, head_dim, num_buckets, max_distance, "
            "bidirectional, scale");
}

}  // namespace
}  // namespace locant
