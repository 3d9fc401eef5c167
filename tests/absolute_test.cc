// Encodings that are added to the input: check values, position rules, errors, strides, bits.
#include "locant/encodings/absolute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "locant/core/executor.h"
#include "locant/encodings/learned/learned.h"
#include "locant/encodings/shaw/shaw.h"
#include "locant/encodings/sinusoidal/sinusoidal.h"
#include "tests/message_of.h"

namespace locant {
namespace {

// PE of the positions: embed() on zeros (1, n, D).
template <class Real = double>
std::vector<Real> rows_of(const Encoding& encoding, const std::vector<int64_t>& positions) {
  const int64_t n = static_cast<int64_t>(positions.size());
  std::vector<Real> x(n * encoding.embed_dim(), Real(0));
  const View all = view(x.data(), {1, n, encoding.embed_dim()});
  encoding.embed(all, {.positions = view(positions.data(), {1, n})}, all);
  return x;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t n = 0; n < got.size(); ++n) EXPECT_NEAR(got[n], wanted[n], 1e-15) << n;
}

// --- sinusoidal ---------------------------------------------------------------------------------

TEST(Sinusoidal, CheckValuesOfEveryLayout) {
  const double s = std::sin(2.0), c = std::cos(2.0);
  expect_near(rows_of(Sinusoidal({.dim = 4}), {2}), {s, c, std::sin(0.02), std::cos(0.02)});
  expect_near(rows_of(Sinusoidal({.dim = 4, .layout = "split"}), {2}),
              {s, std::sin(0.02), c, std::cos(0.02)});
  // θ = 1 and 1/10000: the exponent runs to 1, not to 1 - 2/D.
  expect_near(rows_of(Sinusoidal({.dim = 4, .layout = "tensor2tensor"}), {2}),
              {s, std::sin(2e-4), c, std::cos(2e-4)});
  expect_near(rows_of(Sinusoidal({.dim = 4, .base = 100}), {2}),
              {s, c, std::sin(0.2), std::cos(0.2)});
}

TEST(Sinusoidal, OddWidthsLackTheLastCosineOrEndWithAZero) {
  const double theta = std::pow(10000.0, -2.0 / 3);
  expect_near(rows_of(Sinusoidal({.dim = 3}), {2}),
              {std::sin(2.0), std::cos(2.0), std::sin(2 * theta)});
  expect_near(rows_of(Sinusoidal({.dim = 3, .layout = "split"}), {2}),
              {std::sin(2.0), std::sin(2 * theta), std::cos(2.0)});
  expect_near(rows_of(Sinusoidal({.dim = 5, .layout = "tensor2tensor"}), {2}),
              {std::sin(2.0), std::sin(2e-4), std::cos(2.0), std::cos(2e-4), 0});
}

TEST(Sinusoidal, NegativePositionsMirrorTheSines) {
  const Sinusoidal encoding({.dim = 6});
  const std::vector<double> ahead = rows_of(encoding, {70}), behind = rows_of(encoding, {-70});
  for (int64_t c = 0; c < 6; ++c)
    EXPECT_NEAR(behind[c], c % 2 == 0 ? -ahead[c] : ahead[c], 1e-15) << c;
}

// Angles in long double: float32 angles would be off by 2e-2 at 2^20 and by anything beyond 2^24.
TEST(Sinusoidal, FarPositionsAreExactToFloat32) {
  const int64_t D = 64;
  const Sinusoidal encoding({.dim = D});
  for (const int64_t position :
       {int64_t{1} << 20, (int64_t{1} << 20) + 13, (int64_t{1} << 24) + 1, -(int64_t{1} << 30)}) {
    const std::vector<float> row = rows_of<float>(encoding, {position});
    for (int64_t c = 0; c < D; ++c) {
      const long double angle =
          position / std::pow(10000.0L, static_cast<long double>(c / 2 * 2) / D);
      const double wanted = static_cast<double>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      EXPECT_NEAR(row[c], wanted, std::numeric_limits<float>::epsilon()) << position << " " << c;
    }
  }
}

TEST(Sinusoidal, ARowDependsOnItsPositionAloneToTheLastBit) {
  const Sinusoidal encoding({.dim = 48, .layout = "split"});
  std::vector<int64_t> run(300);
  std::iota(run.begin(), run.end(), 1000);
  const std::vector<float> together = rows_of<float>(encoding, run);
  for (const int64_t n : {0, 1, 63, 64, 217, 299}) {
    const std::vector<float> alone = rows_of<float>(encoding, {run[n]});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + n * 48)) << n;
  }
}

TEST(Sinusoidal, FieldsOutOfRangeAreNamed) {
  const auto message = [](const SinusoidalConfig& config) {
    return message_of([&] { Sinusoidal encoding(config); });
  };
  EXPECT_EQ(message({.heads = 0}), "[sinusoidal] heads must be >= 1, got 0");
  EXPECT_EQ(message({.dim = -2}), "[sinusoidal] dim must be >= 0, got -2");
  EXPECT_EQ(message({.base = 0.5}), "[sinusoidal] base must be >= 1 and finite, got 0.5");
  EXPECT_EQ(message({.layout = "wavy"}),
            "[sinusoidal] layout must be one of interleaved, split, tensor2tensor, got 'wavy'");
  EXPECT_EQ(message({.dim = 3, .layout = "tensor2tensor"}),
            "[sinusoidal] layout tensor2tensor divides by D/2 - 1: dim must be >= 4, got 3");
  EXPECT_EQ(message({.padding_idx = -2}),
            "[sinusoidal] padding_idx must be from -1 to 16777216, got -2");
}

// --- learned ------------------------------------------------------------------------------------

// A table (max_len, 2) of rows (p, -p): what is added tells which row was taken.
class LearnedTest : public testing::Test {
 protected:
  Learned make(int64_t max_len, int64_t padding_idx) {
    table_.clear();
    for (int64_t p = 0; p < max_len; ++p) {
      table_.push_back(static_cast<float>(p));
      table_.push_back(static_cast<float>(-p));
    }
    Learned encoding({.head_dim = 2, .max_len = max_len, .padding_idx = padding_idx});
    encoding.set("table", view(table_.data(), {max_len, 2}));
    return encoding;
  }

  // The rows that the tokens of a batch of two take, read from both channels.
  static std::vector<int> rows_taken(const Encoding& encoding, int64_t L,
                                     const EmbedOptions& options) {
    std::vector<float> x(2 * L * 2, 0.0f);
    const View all = view(x.data(), {2, L, 2});
    encoding.embed(all, options, all);
    std::vector<int> rows;
    for (int64_t n = 0; n < 2 * L; ++n) {
      EXPECT_EQ(x[2 * n], -x[2 * n + 1]);
      rows.push_back(static_cast<int>(x[2 * n]));
    }
    return rows;
  }

  std::vector<float> table_;
};

TEST_F(LearnedTest, BertCountsEveryTokenFromStart) {
  const Learned encoding = make(9, -1);
  EXPECT_EQ(rows_taken(encoding, 4, {}), (std::vector{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(rows_taken(encoding, 4, {.start = 5}), (std::vector{5, 6, 7, 8, 5, 6, 7, 8}));
}

TEST_F(LearnedTest, RobertaCountsRealTokensFromBehindThePaddingRow) {
  const Learned encoding = make(20, 1);
  const bool pads[] = {false, false, false, true, true, true, false, false};  // right, left
  const ConstView given = view(pads, {2, 4});
  EXPECT_EQ(rows_taken(encoding, 4, {.pads = given}), (std::vector{2, 3, 4, 1, 1, 1, 2, 3}));
  EXPECT_EQ(rows_taken(encoding, 4, {.start = 10, .pads = given}),
            (std::vector{12, 13, 14, 1, 1, 1, 12, 13}));
  EXPECT_EQ(rows_taken(encoding, 4, {}), (std::vector{2, 3, 4, 5, 2, 3, 4, 5}));
}

TEST_F(LearnedTest, PositionsAreRowsAsTheyAre) {
  const Learned encoding = make(20, 1);
  const int64_t own[] = {0, 19, 3, 3, 7, 1, 2, 0};
  EXPECT_EQ(rows_taken(encoding, 4, {.positions = view(own, {2, 4})}),
            (std::vector{0, 19, 3, 3, 7, 1, 2, 0}));
  EXPECT_EQ(rows_taken(encoding, 4, {.positions = view(own, {1, 4})}),
            (std::vector{0, 19, 3, 3, 0, 19, 3, 3}));
}

TEST_F(LearnedTest, APositionOutsideTheTableIsNamedAndNothingIsWritten) {
  const Learned encoding = make(6, -1);
  std::vector<float> x(200 * 2, 0.0f), out(x.size(), 7.0f);
  const auto embed = [&](int64_t L, const EmbedOptions& options) {
    return message_of([&] {
      encoding.embed(view(x.data(), {1, L, 2}), options, view(out.data(), {1, L, 2}));
    });
  };
  EXPECT_EQ(embed(200, {}), "[learned] position 6 is not in the table: max_len is 6");
  EXPECT_EQ(embed(2, {.start = 5}), "[learned] position 6 is not in the table: max_len is 6");
  EXPECT_EQ(embed(1, {.start = -1}), "[learned] position -1 is not in the table: max_len is 6");
  EXPECT_EQ(out, std::vector<float>(out.size(), 7.0f));
  EXPECT_EQ(embed(6, {}), "no error");
}

TEST_F(LearnedTest, FieldsOutOfRangeAreNamed) {
  EXPECT_EQ(message_of([&] { make(0, -1); }),
            "[learned] max_len must be from 1 to 16777216, got 0");
  EXPECT_EQ(message_of([&] { make(4, 4); }), "[learned] padding_idx must be < max_len = 4, got 4");
}

// --- both ---------------------------------------------------------------------------------------

TEST(Embed, EncodingsOfScoresSayThatTheyAddNothing) {
  const Shaw shaw({.head_dim = 2});
  EXPECT_EQ(shaw.embed_dim(), 0);
  float x[2] = {};
  const View all = view(x, {1, 1, 2});
  const std::string wanted =
      "[shaw] acts on the scores, it adds nothing to the input; give it to attend() instead";
  EXPECT_EQ(message_of([&] { shaw.embed(all, {}, all); }), wanted);
  EXPECT_EQ(message_of([&] { shaw.embed_reference(all, {}, all); }), wanted);
}

TEST(Embed, WrongArgumentsAreNamedAndNothingIsWritten) {
  const Sinusoidal encoding({.dim = 4});
  const Sinusoidal padded({.dim = 4, .padding_idx = 0});
  std::vector<float> x(2 * 3 * 4 + 4, 0.0f), out(x.size(), 7.0f);
  std::vector<double> wide(x.size());
  const int64_t ids[6] = {};
  const int64_t far[3] = {0, 0, (int64_t{1} << 60) + 1};
  const bool pads[6] = {};
  const View in = view(x.data(), {2, 3, 4}), to = view(out.data(), {2, 3, 4});
  const auto embed = [&](const ConstView& a, const EmbedOptions& options, const View& b) {
    return message_of([&] { encoding.embed(a, options, b); });
  };
  EXPECT_EQ(embed(view(x.data(), {6, 4}), {}, to),
            "[sinusoidal] x must have 3 axes (B, L, D), got shape (6, 4)");
  EXPECT_EQ(embed(view(x.data(), {2, 4, 3}), {}, to),
            "[sinusoidal] x has width 3 but the encoding has dim 4");
  EXPECT_EQ(embed(view(ids, {1, 1, 4}), {}, to), "[sinusoidal] x must be f32 or f64, got i64");
  EXPECT_EQ(embed(in, {}, view(wide.data(), {2, 3, 4})), "[sinusoidal] out must be f32, got f64");
  EXPECT_EQ(embed(in, {}, view(out.data(), {3, 2, 4})),
            "[sinusoidal] out has shape (3, 2, 4) but x has (2, 3, 4)");
  EXPECT_EQ(embed(in, {}, View(out.data(), DType::f32, Extents{2, 3, 4, 1}, Extents{0, 4, 1, 0})),
            "[sinusoidal] out has shape (2, 3, 4, 1) but x has (2, 3, 4)");
  View folded = to;
  folded.strides[0] = 0;
  EXPECT_EQ(embed(in, {}, folded), "[sinusoidal] out has stride 0 on axis 0 of extent 2");
  EXPECT_EQ(embed(in, {}, view(x.data() + 4, {2, 3, 4})),
            "[sinusoidal] out overlaps x in memory, and is not x itself");
  EXPECT_EQ(embed(in, {.positions = view(pads, {2, 3})}, to),
            "[sinusoidal] positions must be i64, got bool");
  EXPECT_EQ(embed(in, {.positions = view(ids, {3, 2})}, to),
            "[sinusoidal] positions has shape (3, 2) but must be (2 or 1, 3)");
  EXPECT_EQ(embed(in, {.positions = view(far, {1, 3})}, to),
            "[sinusoidal] positions hold 1152921504606846977, beyond ±2^60");
  EXPECT_EQ(embed(in, {.start = 1, .positions = view(ids, {2, 3})}, to),
            "[sinusoidal] positions are the rows to take: leave out start and pads");
  EXPECT_EQ(embed(in, {.start = std::numeric_limits<int64_t>::max()}, to),
            "[sinusoidal] start is 9223372036854775807, beyond ±2^60");
  EXPECT_EQ(embed(in, {.pads = view(pads, {2, 3})}, to),
            "[sinusoidal] pads change nothing while padding_idx is -1: set padding_idx, or give "
            "positions");
  EXPECT_EQ(message_of([&] {
              padded.embed(in, {.pads = view(pads, {1, 3})}, to);
            }),
            "[sinusoidal] pads has shape (1, 3) but must be (2, 3)");
  EXPECT_EQ(message_of([&] { encoding.embed_reference(in, {}, to); }),
            "[sinusoidal] out must be f64, got f32");
  EXPECT_EQ(out, std::vector<float>(out.size(), 7.0f));
}

TEST(Embed, OutOverTheTableIsRefused) {
  Learned encoding({.head_dim = 2, .max_len = 3});
  std::vector<float> table(6), x(6);
  encoding.set("table", view(table.data(), {3, 2}));
  EXPECT_EQ(message_of([&] {
              encoding.embed(view(x.data(), {1, 3, 2}), {}, view(table.data(), {1, 3, 2}));
            }),
            "[learned] out overlaps the parameter 'table' in memory");
}

TEST(Embed, EmptyInputsAreLeftAlone) {
  const Sinusoidal encoding({.dim = 4});
  float x = 7;
  for (const View& empty : {view(&x, {0, 3, 4}), view(&x, {2, 0, 4})})
    EXPECT_EQ(message_of([&] { encoding.embed(empty, {}, empty); }), "no error");
  EXPECT_EQ(x, 7);
}

TEST(Embed, AnyStridesInPlaceOrNotGiveTheSameBits) {
  const int64_t B = 3, L = 150, D = 10;
  const Sinusoidal encoding({.dim = D});
  std::vector<float> x(B * L * D), plain(x.size());
  for (size_t n = 0; n < x.size(); ++n) x[n] = 0.1f * static_cast<float>(n % 37);
  encoding.embed(view(x.data(), {B, L, D}), {.start = 30}, view(plain.data(), {B, L, D}));

  // Channels first, backwards in memory.
  std::vector<float> turned(x.size());
  const int64_t shape[] = {B, L, D}, strides[] = {L * D, -1, -L};
  const View odd(turned.data() + L * D - 1, DType::f32, shape, strides);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t l = 0; l < L; ++l)
      for (int64_t c = 0; c < D; ++c) *odd.at<float>(b, l, c) = x[(b * L + l) * D + c];
  encoding.embed(odd, {.start = 30}, odd);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t l = 0; l < L; ++l)
      for (int64_t c = 0; c < D; ++c)
        ASSERT_EQ(*odd.at<float>(b, l, c), plain[(b * L + l) * D + c]) << b << " " << l << " " << c;
}

TEST(Embed, ThreadsChangeNoBit) {
  const int64_t B = 2, L = 500, D = 32;
  Learned encoding({.head_dim = D, .max_len = 600});
  encoding.init(3);
  std::vector<double> x(B * L * D, 0.25), one(x.size()), three(x.size());
  const int before = num_threads();
  set_num_threads(1);
  encoding.embed(view(x.data(), {B, L, D}), {.start = 100}, view(one.data(), {B, L, D}));
  set_num_threads(3);
  encoding.embed(view(x.data(), {B, L, D}), {.start = 100}, view(three.data(), {B, L, D}));
  set_num_threads(before);
  EXPECT_EQ(one, three);
  EXPECT_NE(one, x);
}

TEST(Embed, TablesOfHalfPrecisionAndAnyStridesAreRead) {
  // bfloat16 of 1, 2, 3, 4: the upper half of the float. Rows (1, 3) and (2, 4) by strides.
  const uint16_t table[] = {0x3f80, 0x4000, 0x4040, 0x4080};
  const int64_t shape[] = {2, 2}, strides[] = {1, 2};
  Learned encoding({.head_dim = 2, .max_len = 2});
  encoding.set("table", ConstView(table, DType::bf16, shape, strides));
  EXPECT_EQ(rows_of<float>(encoding, {1, 0}), (std::vector<float>{2, 4, 1, 3}));
  EXPECT_EQ(rows_of<double>(encoding, {1, 0}), (std::vector<double>{2, 4, 1, 3}));
}

}  // namespace
}  // namespace locant
