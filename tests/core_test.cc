#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "locant/core/fields.h"
#include "locant/core/overlap.h"
#include "locant/core/view.h"
#include "tests/message_of.h"

namespace locant {
namespace {

ConstView bits_view(const std::vector<uint16_t>& bits, DType dtype) {
  const int64_t shape[] = {static_cast<int64_t>(bits.size())};
  return ConstView(bits.data(), dtype, shape);
}

TEST(View, ContiguousStridesAreRowMajor) {
  float data[24] = {};
  const View v = view(data, {2, 3, 4});
  EXPECT_EQ(v.rank, 3);
  EXPECT_EQ(v.strides, (Extents{12, 4, 1, 0}));
  EXPECT_EQ(v.at<float>(1, 2, 3), data + 23);
  EXPECT_EQ(v.size(), 24);
  EXPECT_EQ(shape_text(v), "(2, 3, 4)");
}

TEST(View, MoreThanFourAxesAreRefused) {
  float data[1] = {};
  EXPECT_EQ(message_of([&] { view(data, {1, 1, 1, 1, 1}); }), "[view] at most 4 axes, got 5");
}

TEST(View, ReversedReadsTheAxisBackwards) {
  const double data[] = {0, 1, 2, 10, 11, 12};
  const ConstView v = view(data, {2, 3}).reversed(1);
  EXPECT_EQ(element(v, 0, 0), 2);
  EXPECT_EQ(element(v, 1, 2), 10);
  EXPECT_EQ(element(v.reversed(1), 1, 2), 12);
}

TEST(View, EveryTypeHasASizeAndAName) {
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_STREQ(name_of(DType::bf16), "bf16");
  EXPECT_STREQ(name_of(DType::boolean), "bool");
}

TEST(Element, ReadsHalfPrecision) {
  // 1, -2, the largest, the smallest normal, the smallest subnormal, -0, inf, NaN
  const std::vector<uint16_t> bits = {0x3c00, 0xc000, 0x7bff, 0x0400,
                                      0x0001, 0x8000, 0x7c00, 0x7e00};
  const ConstView v = bits_view(bits, DType::f16);
  EXPECT_EQ(element(v, 0), 1.0);
  EXPECT_EQ(element(v, 1), -2.0);
  EXPECT_EQ(element(v, 2), 65504.0);
  EXPECT_EQ(element(v, 3), std::ldexp(1.0, -14));
  EXPECT_EQ(element(v, 4), std::ldexp(1.0, -24));
  EXPECT_TRUE(std::signbit(element(v, 5)));
  EXPECT_EQ(element(v, 6), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(element(v, 7)));
}

TEST(Element, ReadsBfloat16) {
  const std::vector<uint16_t> bits = {0x3f80, 0xc040, 0x7f80, 0x7fc0};
  const ConstView v = bits_view(bits, DType::bf16);
  EXPECT_EQ(element(v, 0), 1.0);
  EXPECT_EQ(element(v, 1), -3.0);
  EXPECT_EQ(element(v, 2), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(element(v, 3)));
}

TEST(Element, ReadsBooleansAndIntegersThroughStrides) {
  const bool flags[] = {true, false, true, false};
  const int64_t numbers[] = {0, -7, int64_t{1} << 40, 3};
  const int64_t shape[] = {2}, strides[] = {2};
  EXPECT_EQ(element(ConstView(flags, DType::boolean, shape, strides), 1), 1.0);
  EXPECT_EQ(element(ConstView(numbers, DType::i64, shape, strides), 1), 1099511627776.0);
}

TEST(Overlap, SharedElementsAreFound) {
  float data[32] = {};
  EXPECT_TRUE(may_overlap(view(data, {8}), view(data + 7, {8})));
  EXPECT_FALSE(may_overlap(view(data, {8}), view(data + 8, {8})));
  EXPECT_TRUE(may_overlap(view(data + 7, {8}), view(data, {8}).reversed(0)));
}

TEST(Overlap, EmptyViewsOverlapNothing) {
  float data[4] = {};
  EXPECT_FALSE(may_overlap(view(data, {0, 4}), view(data, {4})));
  EXPECT_FALSE(may_overlap(ConstView(), view(data, {4})));
}

TEST(Overlap, InterleavedSlicesOfOneBufferAreApart) {
  // Each token's row holds q | k | v | out, each (H = 2, d = 4).
  float data[5 * 32] = {};
  const int64_t shape[] = {1, 2, 5, 4}, strides[] = {5 * 32, 4, 32, 1};
  const auto slice = [&](int n) { return ConstView(data + 8 * n, DType::f32, shape, strides); };
  EXPECT_FALSE(may_overlap(slice(3), slice(0)));
  EXPECT_FALSE(may_overlap(slice(2), slice(3)));
  EXPECT_TRUE(may_overlap(slice(1), slice(1)));
  EXPECT_TRUE(may_overlap(ConstView(data + 4, DType::f32, shape, strides), slice(1)));
}

const Field kCount{"count", int64_t{3}, "", {}};
const Field kRate{"rate", 0.5, "", {}};
const Field kFlag{"flag", false, "", {}};
const Field kMode{"mode", std::string("hf"), "", {"hf", "clamp"}};
const Field kList{"list", std::vector<double>{}, "", {}};

TEST(Fields, TextReadsBackAsTheSameValue) {
  EXPECT_EQ(parse_field("x", kCount, "-16"), FieldValue(int64_t{-16}));
  EXPECT_EQ(parse_field("x", kRate, "1e-3"), FieldValue(0.001));
  EXPECT_EQ(parse_field("x", kFlag, "true"), FieldValue(true));
  EXPECT_EQ(parse_field("x", kMode, "clamp"), FieldValue(std::string("clamp")));
  EXPECT_EQ(parse_field("x", kList, "1,2.5,-4"), FieldValue(std::vector<double>{1, 2.5, -4}));
  EXPECT_EQ(parse_field("x", kList, ""), FieldValue(std::vector<double>{}));
  for (const double number : {0.1, 1.0 / 3, -1e300, 5e-324})
    EXPECT_EQ(parse_field("x", kRate, text_of(number)), FieldValue(number));
  EXPECT_EQ(text_of(FieldValue(std::vector<double>{1, 0.5})), "1,0.5");
  EXPECT_EQ(text_of(FieldValue(true)), "true");
}

TEST(Fields, BadTextIsRefusedByName) {
  EXPECT_EQ(message_of([] { parse_field("shaw", kCount, "12x"); }),
            "[shaw] count must be an integer, got '12x'");
  EXPECT_EQ(message_of([] { parse_field("shaw", kCount, ""); }),
            "[shaw] count must be an integer, got ''");
  EXPECT_EQ(message_of([] { parse_field("shaw", kCount, "99999999999999999999"); }),
            "[shaw] count must be an integer, got '99999999999999999999'");
  EXPECT_EQ(message_of([] { parse_field("shaw", kFlag, "maybe"); }),
            "[shaw] flag must be true or false, got 'maybe'");
  EXPECT_EQ(message_of([] { parse_field("shaw", kMode, "other"); }),
            "[shaw] mode must be one of hf, clamp, got 'other'");
  for (const char* text : {"1,,2", "1,2,", ",1", "a"})
    EXPECT_NE(message_of([&] { parse_field("shaw", kList, text); }), "no error") << text;
}

TEST(Fields, OnlyIntegersBecomeNumbers) {
  EXPECT_EQ(converted("x", kRate, int64_t{2}), FieldValue(2.0));
  EXPECT_EQ(message_of([] { converted("t5", kCount, 2.5); }),
            "[t5] count must be an integer, got a number (2.5)");
  EXPECT_EQ(message_of([] { converted("t5", kCount, true); }),
            "[t5] count must be an integer, got true or false (true)");
}

struct Example {
  int64_t heads = 1;
  double scale = 1;
};

TEST(Fields, DescribeParseAndDumpAgree) {
  const Fields<Example> fields{
      "example",
      {field("heads", &Example::heads, "how many"), field("scale", &Example::scale, "c")}};
  const Example parsed = fields.parse({{"heads", 12}, {"scale", 2}});
  EXPECT_EQ(parsed.heads, 12);
  EXPECT_EQ(parsed.scale, 2.0);
  EXPECT_EQ(fields.dump(parsed), (FieldValues{{"heads", 12}, {"scale", 2.0}}));
  EXPECT_EQ(fields.describe().at(1).name, "scale");
  EXPECT_EQ(message_of([&] {
              fields.parse({{"head", 2}});
            }),
            "[example] unknown field 'head'; known: heads, scale");
}

}  // namespace
}  // namespace locant
