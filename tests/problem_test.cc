#include "locant/terms/problem.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "locant/encodings/none/none.h"
#include "locant/layers/attend.h"
#include "locant/terms/terms.h"
#include "tests/message_of.h"

namespace locant {
namespace {

Problem small_problem() {
  Problem p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.q_len = 5;
  p.k_len = 7;
  p.head_dim = p.value_dim = 8;
  p.sequences = {{.batch = 0, .q_len = 5, .k_len = 7}, {.batch = 1, .q_len = 3, .k_len = 4}};
  return p;
}

std::string error_of(const std::function<void(Problem&)>& change) {
  Problem p = small_problem();
  change(p);
  return message_of([&] { validate(p); });
}

TEST(ValidateProblem, AcceptsPaddingPackingAndEmptySizes) {
  EXPECT_EQ(error_of([](Problem&) {}), "no error");
  EXPECT_EQ(error_of([](Problem& p) {
              p.sequences = {{.batch = 1, .q_begin = 2, .q_len = 3, .k_begin = 0, .k_len = 7},
                             {.batch = 1, .q_begin = 0, .q_len = 2, .k_begin = 3, .k_len = 2},
                             {.batch = 1, .q_begin = 1, .q_len = 0}};
            }),
            "no error");
  for (int64_t Problem::*size : {&Problem::batch, &Problem::q_len, &Problem::k_len})
    EXPECT_EQ(error_of([&](Problem& p) {
                p.*size = 0;
                p.sequences.clear();
              }),
              "no error");
  EXPECT_EQ(error_of([](Problem& p) { p.heads = p.kv_heads = 0; }), "no error");
}

TEST(ValidateProblem, HeadsMustBeAMultipleOfKeyHeads) {
  EXPECT_EQ(error_of([](Problem& p) { p.kv_heads = 3; }),
            "[attend] q has 4 heads, which is no multiple of the 3 heads of k and v");
  EXPECT_EQ(error_of([](Problem& p) { p.kv_heads = 0; }),
            "[attend] q has 4 heads, which is no multiple of the 0 heads of k and v");
}

TEST(ValidateProblem, WidthsMustBePositive) {
  EXPECT_EQ(error_of([](Problem& p) { p.head_dim = 0; }), "[attend] head_dim must be >= 1, got 0");
  EXPECT_EQ(error_of([](Problem& p) { p.value_dim = 0; }),
            "[attend] value_dim must be >= 1, got 0");
}

TEST(ValidateProblem, SequencesMustStayInsideTheBuffers) {
  EXPECT_EQ(error_of([](Problem& p) { p.sequences[1].batch = 2; }),
            "[attend] sequence 1 has batch index 2 but the batch size is 2");
  EXPECT_EQ(error_of([](Problem& p) { p.sequences[1].q_begin = 3; }),
            "[attend] sequence 1 has query rows 3 to 3 + 3 but the buffer has 5");
  EXPECT_EQ(error_of([](Problem& p) { p.sequences[0].k_len = 8; }),
            "[attend] sequence 0 has key rows 0 to 0 + 8 but the buffer has 7");
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_NE(error_of([&](Problem& p) { p.sequences[0].q_begin = huge; }), "no error");
  EXPECT_NE(error_of([](Problem& p) { p.sequences[0].q_len = -1; }), "no error");
  EXPECT_NE(error_of([&](Problem& p) { p.sequences[0].q_start = huge; }), "no error");
}

TEST(ValidateProblem, QueryRowsBelongToOneSequence) {
  EXPECT_EQ(error_of([](Problem& p) {
              p.sequences = {{.batch = 0, .q_begin = 2, .q_len = 2, .k_len = 1},
                             {.batch = 0, .q_begin = 0, .q_len = 3, .k_len = 1}};
            }),
            "[attend] sequences 1 and 0 share query row 2 of batch row 0");
}

TEST(ValidateProblem, PrefixAndWindowHaveRanges) {
  EXPECT_EQ(error_of([](Problem& p) { p.sequences[1].prefix = 5; }),
            "[attend] sequence 1 has prefix 5 but 4 keys");
  EXPECT_NE(error_of([](Problem& p) { p.sequences[1].prefix = -1; }), "no error");
  EXPECT_EQ(error_of([](Problem& p) { p.window_left = -2; }),
            "[attend] window_left must be >= -1, got -2");
  EXPECT_EQ(error_of([](Problem& p) { p.window_right = -3; }),
            "[attend] window_right must be >= -1, got -3");
}

TEST(ValidateProblem, MasksMustBroadcastAndPositionsMustFit) {
  const std::vector<float> floats(2 * 4 * 5 * 7);
  const std::vector<int64_t> ids(14);
  EXPECT_EQ(error_of([&](Problem& p) { p.mask = view(floats.data(), {1, 4, 1, 7}); }), "no error");
  EXPECT_EQ(error_of([&](Problem& p) {
              p.mask = view(floats.data(), {2, 2, 5, 7});
            }),
            "[attend] mask has shape (2, 2, 5, 7) but (B, H, Lq, Lk) is (2, 4, 5, 7); each axis "
            "must be equal or 1");
  EXPECT_EQ(error_of([&](Problem& p) {
              p.mask = view(ids.data(), {1, 1, 1, 7});
            }),
            "[attend] mask must be bool or floating point, got i64");
  EXPECT_EQ(error_of([&](Problem& p) { p.k_positions = view(ids.data(), {2, 7}); }), "no error");
  EXPECT_EQ(error_of([&](Problem& p) {
              p.q_positions = view(ids.data(), {1, 7});
            }),
            "[attend] q_positions has shape (1, 7) but must be (2 or 1, 5) or (2 or 1, 5, axes)");
  EXPECT_EQ(error_of([&](Problem& p) {
              p.k_positions = view(floats.data(), {2, 7});
            }),
            "[attend] k_positions must be i64, got f32");
}

TEST(Offsets, CoverAllPairsOfAllSequences) {
  Problem p = small_problem();
  p.sequences[0].q_start = 10;  // queries 10..14, keys 0..6
  p.sequences[1].k_start = 3;   // queries 0..2, keys 3..6
  EXPECT_EQ(p.offsets().first, -14);
  EXPECT_EQ(p.offsets().last, 6);
}

TEST(Offsets, SequencesWithoutPairsDoNotCount) {
  Problem p = small_problem();
  p.sequences[0].q_len = 0;
  p.sequences[0].q_start = 1000;
  EXPECT_EQ(p.offsets().first, -2);
  EXPECT_EQ(p.offsets().last, 3);
  p.sequences.clear();
  EXPECT_EQ(p.offsets().first, 0);
  EXPECT_EQ(p.offsets().last, 0);
}

TEST(Offsets, PositionIdsReplaceStarts) {
  Problem p = small_problem();
  p.sequences.resize(1);  // batch row 0: queries 0..4, keys 0..6
  const std::vector<int64_t> q_ids = {3, 50, -2, 7, 7, 999, 999, 999, 999, 999};  // (2, 5)
  const std::vector<int64_t> k_ids = {0, 5, -9, 1, 1, 1, 4};                      // (1, 7)
  p.q_positions = view(q_ids.data(), {2, 5});
  EXPECT_EQ(p.offsets().first, 0 - 50);
  EXPECT_EQ(p.offsets().last, 6 + 2);
  p.k_positions = view(k_ids.data(), {1, 7});
  EXPECT_EQ(p.offsets().first, -9 - 50);
  EXPECT_EQ(p.offsets().last, 5 + 2);
}

TEST(Visible, CausalWindowAndPrefixCompareIndices) {
  Problem p = small_problem();
  const auto range = [&](const Sequence& s, int64_t i) {
    const KeyRange r = p.visible(s, i);
    return std::pair(r.begin, r.end);
  };
  const Sequence decode{.q_len = 1, .k_len = 7, .q_start = 4};
  EXPECT_EQ(range(decode, 0), std::pair(int64_t{0}, int64_t{7}));
  p.causal = true;
  EXPECT_EQ(range(decode, 0), std::pair(int64_t{0}, int64_t{5}));
  p.window_left = 2;
  EXPECT_EQ(range(decode, 0), std::pair(int64_t{2}, int64_t{5}));
  const Sequence prefixed{.q_len = 1, .k_len = 7, .q_start = 1, .prefix = 4};
  EXPECT_EQ(range(prefixed, 0), std::pair(int64_t{0}, int64_t{4}));
  const Sequence behind{.q_len = 1, .k_len = 7, .q_start = 0, .k_start = 3};
  EXPECT_EQ(range(behind, 0).second, 0);
}

TEST(RowMaps, UnitStepsAreRecognised) {
  EXPECT_TRUE(has_unit_steps({.first = -2, .rows = {0, 1, 1, 2}}));
  EXPECT_FALSE(has_unit_steps({.first = -2, .rows = {0, 1, 3}}));
  EXPECT_TRUE(has_unit_steps({.first = 0, .rows = {5}}));
}

TEST(ValidateTerms, TablesMapsAndBiasesMustFit) {
  const std::vector<float> table(2 * 3 * 8);
  const auto error_with = [&](const std::function<void(Projection&)>& change) {
    Projection p{.name = "c2p",
                 .side = Side::query,
                 .scale = 1,
                 .plus = {},
                 .table = view(table.data(), {2, 3, 8}),
                 .map = {.first = -1, .rows = {0, 1, 2}}};
    change(p);
    Terms terms;
    terms.projections.push_back(p);
    return message_of([&] { validate(terms, 2, 8, 8); });
  };
  EXPECT_EQ(error_with([](Projection&) {}), "no error");
  EXPECT_EQ(error_with([&](Projection& p) {
              p.table = view(table.data(), {2, 4, 6});
            }),
            "[terms] table of 'c2p' is f32 (2, 4, 6) but must be floating point (2 or 1, rows, 8)");
  EXPECT_EQ(error_with([](Projection& p) {
              p.map.rows = {0, 1, 3};
            }),
            "[terms] 'c2p' maps to rows 0 to 3 but the table has 3");
  EXPECT_EQ(error_with([](Projection& p) {
              p.map.rows = {0, 2, 1};
            }),
            "[terms] 'c2p' has a row map that falls from 2 to 1 at offset 1");
  EXPECT_EQ(error_with([](Projection& p) { p.map.rows.clear(); }),
            "[terms] 'c2p' has an empty row map");
  Terms biased;
  biased.biases.push_back({.name = "b",
                           .first = 0,
                           .count = 2,
                           .values = {1, 2, 3},
                           .left_slope = {},
                           .right_slope = {}});
  EXPECT_EQ(message_of([&] { validate(biased, 2, 8, 8); }),
            "[terms] bias 'b' has 3 values but 2 heads and 2 offsets");
}

// attend's arguments: q, k (1, 2, 3, 8) and v (1, 2, 3, 4) unless a test changes them.
class Arguments : public testing::Test {
 protected:
  std::string attend_error() {
    const None none({.heads = 2, .head_dim = 8});
    return message_of([&] { attend(q, k, v, none, options, out); });
  }

  std::vector<float> q_data = std::vector<float>(200), k_data = q_data, v_data = q_data,
                     out_data = q_data;
  ConstView q = view(q_data.data(), {1, 2, 3, 8}), k = view(k_data.data(), {1, 2, 3, 8}),
            v = view(v_data.data(), {1, 2, 3, 4});
  View out = view(out_data.data(), {1, 2, 3, 4});
  AttendOptions options;
};

TEST_F(Arguments, FitAsTheyAre) {
  EXPECT_EQ(attend_error(), "no error");
}

TEST_F(Arguments, ShapesAreComparedByName) {
  k = view(k_data.data(), {1, 2, 3, 6});
  EXPECT_EQ(attend_error(),
            "[attend] k (1, 2, 3, 6) and q (1, 2, 3, 8) must have the same head_dim, got 6 and 8");
  k = view(k_data.data(), {2, 3, 8});
  EXPECT_EQ(attend_error(), "[attend] k must have 4 axes (B, Hkv, Lk, d), got shape (2, 3, 8)");
  k = view(k_data.data(), {1, 2, 4, 8});
  EXPECT_EQ(attend_error(),
            "[attend] v (1, 2, 3, 4) and k (1, 2, 4, 8) must have the same length, got 3 and 4");
  k = view(k_data.data(), {3, 2, 3, 8});
  EXPECT_EQ(
      attend_error(),
      "[attend] k (3, 2, 3, 8) and q (1, 2, 3, 8) must have the same batch size, got 3 and 1");
}

TEST_F(Arguments, HeadsOfQueriesAreAMultipleOfThoseOfKeys) {
  q = view(q_data.data(), {1, 3, 3, 8});
  EXPECT_EQ(
      attend_error(),
      "[attend] q (1, 3, 3, 8) and k (1, 2, 3, 8): the heads of q must be a multiple of those "
      "of k, got 3 and 2");
}

TEST_F(Arguments, TypesMustBeEqualAndKnown) {
  std::vector<double> wide(200);
  v = view(wide.data(), {1, 2, 3, 4});
  EXPECT_EQ(attend_error(), "[attend] v (1, 2, 3, 4) is f64 but q (1, 2, 3, 8) is f32");
  q.dtype = k.dtype = v.dtype = DType::i64;
  EXPECT_EQ(attend_error(), "[attend] q (1, 2, 3, 8) is i64 but must be f32, f64, f16 or bf16");
}

TEST_F(Arguments, ResultsOfHalfInputsAreHalfOrFloat32) {
  q.dtype = k.dtype = v.dtype = DType::bf16;
  EXPECT_EQ(attend_error(), "no error");
  out.dtype = DType::bf16;
  EXPECT_EQ(attend_error(), "no error");
  out.dtype = DType::f16;
  EXPECT_EQ(attend_error(), "[attend] out is f16 but q is bf16: it must be that or f32");
  out.dtype = DType::f32;
  options.lse = view(k_data.data() + 100, {1, 2, 3});
  EXPECT_EQ(attend_error(), "no error");
  options.lse.dtype = DType::bf16;
  EXPECT_EQ(attend_error(), "[attend] lse is bf16 but must be f32 as q is bf16");
  q.dtype = k.dtype = v.dtype = DType::f32;
  options.lse = {};
  out.dtype = DType::bf16;
  EXPECT_EQ(attend_error(), "[attend] out is bf16 but q is f32");
}

TEST_F(Arguments, OutputsMustFitAndStandApart) {
  out = view(out_data.data(), {1, 2, 3, 8});
  EXPECT_EQ(attend_error(), "[attend] out has shape (1, 2, 3, 8) but must be (1, 2, 3, 4)");
  out = view(v_data.data() + 20, {1, 2, 3, 4});
  EXPECT_EQ(attend_error(), "[attend] out overlaps v in memory");
  out = view(out_data.data(), {1, 2, 3, 4});
  options.lse = view(out_data.data(), {1, 2, 3});
  EXPECT_EQ(attend_error(), "[attend] lse overlaps out in memory");
  options.lse = view(q_data.data(), {1, 2, 3});
  EXPECT_EQ(attend_error(), "[attend] lse overlaps q in memory");
  options.lse = {};
  out.strides[1] = 0;
  EXPECT_EQ(attend_error(), "[attend] out has stride 0 on axis 1 of extent 2");
  out = View();
  EXPECT_EQ(attend_error(), "[attend] out has shape () but must be (1, 2, 3, 4)");
  q.data = nullptr;
  EXPECT_EQ(attend_error(), "[attend] q must not be null");
}

TEST_F(Arguments, LengthsAreCheckedByRow) {
  const int64_t two[] = {3, 3}, long_one[] = {4}, negative[] = {-1};
  options.lengths = two;
  EXPECT_EQ(attend_error(), "[attend] lengths has 2 entries but the batch size is 1");
  options.lengths = long_one;
  EXPECT_EQ(attend_error(), "[attend] lengths[0] must be from 0 to 3, the length of q, got 4");
  options.lengths = {};
  options.k_lengths = negative;
  EXPECT_EQ(attend_error(), "[attend] k_lengths[0] must be from 0 to 3, the length of k, got -1");
}

TEST_F(Arguments, SequencesExcludeTheShorterForms) {
  const Sequence whole[] = {{.q_len = 3, .k_len = 3}};
  const int64_t lengths[] = {3};
  options.sequences = whole;
  EXPECT_EQ(attend_error(), "no error");
  options.lengths = lengths;
  EXPECT_NE(attend_error().find("leave out lengths"), std::string::npos);
  options.lengths = {};
  options.q_start = 1;
  EXPECT_NE(attend_error().find("own q_start"), std::string::npos);
}

TEST_F(Arguments, LengthsBecomeSequencesAtEitherEnd) {
  const int64_t lengths[] = {2}, k_lengths[] = {1};
  options.lengths = lengths;
  options.left_padded = true;
  options.q_start = 5;
  options.prefix = 2;
  Sequence s = make_problem(q, k, v, options).sequences.at(0);
  EXPECT_EQ(s.q_begin, 1);
  EXPECT_EQ(s.k_begin, 1);
  EXPECT_EQ(s.k_len, 2);
  EXPECT_EQ(s.q_start, 5);
  options.k_lengths = k_lengths;
  s = make_problem(q, k, v, options).sequences.at(0);
  EXPECT_EQ(s.q_len, 2);
  EXPECT_EQ(s.k_len, 1);
  EXPECT_EQ(s.k_begin, 2);
  EXPECT_EQ(s.prefix, 1);  // no more than there are keys
}

TEST_F(Arguments, MasksBroadcastLikeNumpy) {
  const bool flags[3] = {true, false, true};
  options.mask = view(flags, {3});
  const ConstView mask = make_problem(q, k, v, options).mask;
  EXPECT_EQ(mask.shape, (Extents{1, 2, 3, 3}));
  EXPECT_EQ(mask.strides, (Extents{0, 0, 0, 1}));
  options.mask = view(flags, {2});
  EXPECT_EQ(attend_error(),
            "[attend] mask has shape (2), which does not broadcast to (B, H, Lq, Lk) = (1, 2, 3, "
            "3)");
}

TEST_F(Arguments, EmptyResultsAreLegal) {
  q = view(q_data.data(), {1, 0, 3, 8});
  k = view(k_data.data(), {1, 0, 3, 8});
  v = view(v_data.data(), {1, 0, 3, 4});
  out = view(out_data.data(), {1, 0, 3, 4});
  EXPECT_EQ(attend_error(), "no error");
  q = view(q_data.data(), {1, 2, 3, 0});
  k = view(k_data.data(), {1, 2, 3, 0});
  v = view(v_data.data(), {1, 2, 3, 4});
  EXPECT_EQ(attend_error(), "[attend] head_dim must be >= 1, got 0");
}

TEST_F(Arguments, NoKeysGiveZeros) {
  k = view(k_data.data(), {1, 2, 0, 8});
  v = view(v_data.data(), {1, 2, 0, 4});
  std::fill(out_data.begin(), out_data.end(), 7.0f);
  EXPECT_EQ(attend_error(), "no error");
  for (int n = 0; n < 24; ++n) EXPECT_EQ(out_data[n], 0.0f);
  EXPECT_EQ(out_data[24], 7.0f);
}

}  // namespace
}  // namespace locant
