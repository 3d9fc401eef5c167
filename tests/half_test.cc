// 16-bit types: conversions for all bit patterns, in core and in the kernels of every ISA.
#include "locant/core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "locant/encodings/none/none.h"
#include "locant/kernels/isa.h"
#include "locant/layers/attend.h"

namespace locant {
namespace {

constexpr int kPatterns = 65536;

// What the bits mean: (-1)^sign · 1.fraction · 2^(exponent - bias), without the 1 at exponent 0.
double meaning_of(uint16_t bits, int fraction_bits, int bias) {
  const int exponents = (1 << (15 - fraction_bits)) - 1;
  const int exponent = (bits >> fraction_bits) & exponents;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == exponents) return fraction == 0 ? sign * INFINITY : NAN;
  const int leading = exponent == 0 ? 0 : 1 << fraction_bits;
  return sign * std::ldexp(leading + fraction, std::max(exponent, 1) - bias - fraction_bits);
}
double meaning_of(Half x) {
  return meaning_of(x.bits, 10, 15);
}
double meaning_of(Bfloat x) {
  return meaning_of(x.bits, 7, 127);
}

template <class S>
S from_bits(int bits) {
  S out;
  out.bits = static_cast<uint16_t>(bits);
  return out;
}

template <class S>
class StoredType : public testing::Test {};
using StoredTypes = testing::Types<Half, Bfloat>;
TYPED_TEST_SUITE(StoredType, StoredTypes);

TYPED_TEST(StoredType, AllPatternsMeanWhatTheFormatSays) {
  for (int bits = 0; bits < kPatterns; ++bits) {
    const auto x = from_bits<TypeParam>(bits);
    const float value = x;
    if (std::isnan(meaning_of(x))) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      EXPECT_EQ(value, meaning_of(x)) << bits;
      EXPECT_EQ(std::signbit(value), bits >= 0x8000) << bits;
      EXPECT_EQ(TypeParam(value).bits, bits);
    }
  }
}

TYPED_TEST(StoredType, BetweenNeighboursTheNearerWinsAndTiesGoToTheEvenOne) {
  for (int bits = 0; bits + 1 < kPatterns / 2; ++bits) {
    const auto low = from_bits<TypeParam>(bits), high = from_bits<TypeParam>(bits + 1);
    if (!std::isfinite(meaning_of(high))) break;
    const auto middle = static_cast<float>((meaning_of(low) + meaning_of(high)) / 2);
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(TypeParam(middle).bits, even) << middle;
    EXPECT_EQ(TypeParam(-middle).bits, even | 0x8000) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, 0.0f)).bits, bits) << middle;
    EXPECT_EQ(TypeParam(std::nextafter(middle, INFINITY)).bits, bits + 1) << middle;
  }
}

TEST(Half, OverflowBeginsHalfwayToTheNextNumberThatIsMissing) {
  EXPECT_EQ(static_cast<float>(Half(65519.996f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Half(65520.0f)), INFINITY);
  EXPECT_EQ(static_cast<float>(Half(-1e30f)), -INFINITY);
}

TEST(Bfloat, OverflowAndNaNsWithLowBitsOnly) {
  EXPECT_EQ(static_cast<float>(Bfloat(std::numeric_limits<float>::max())), INFINITY);
  EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat(std::bit_cast<float>(0x7f800001u)))));
}

// Attention of `queries` zero queries over the rows of v: the mean of each column.
template <class S, class Out>
std::vector<Out> means(const std::vector<S>& v, int64_t keys, int64_t queries) {
  const int64_t width = static_cast<int64_t>(v.size()) / keys;
  const std::vector<S> q(queries * 8), k(keys * 8);
  std::vector<Out> out(queries * width);
  attend(view(q.data(), {1, 1, queries, 8}), view(k.data(), {1, 1, keys, 8}),
         view(v.data(), {1, 1, keys, width}), None({.heads = 1, .head_dim = 8}), {},
         view(out.data(), {1, 1, queries, width}));
  return out;
}

TYPED_TEST(StoredType, KernelsOfEveryIsaReadAllPatterns) {
  std::vector<TypeParam> v(kPatterns);
  for (int bits = 0; bits < kPatterns; ++bits) v[bits].bits = static_cast<uint16_t>(bits);
  for (const std::string& name : available_isas())
    for (const int64_t queries : {1, 7}) {  // values read in place, and packed
      set_isa(name);
      const std::vector<float> out = means<TypeParam, float>(v, 1, queries);
      for (size_t n = 0; n < out.size(); ++n) {
        const double wanted = meaning_of(v[n % kPatterns]);
        if (std::isnan(wanted) ? !std::isnan(out[n]) : out[n] != wanted)
          ADD_FAILURE() << name << ": pattern " << n % kPatterns << " gives " << out[n];
      }
    }
  set_isa("best");
}

TYPED_TEST(StoredType, KernelsOfEveryIsaRoundTiesToEven) {
  // Two keys: the mean of neighbouring numbers lies exactly between them.
  std::vector<int> low;
  for (int bits = 0; bits < kPatterns; ++bits)
    if (std::isfinite(meaning_of(from_bits<TypeParam>(bits))) &&
        std::isfinite(meaning_of(from_bits<TypeParam>(bits + 1))))
      low.push_back(bits);
  const size_t width = low.size();
  std::vector<TypeParam> v(2 * width);
  for (size_t n = 0; n < width; ++n) {
    v[n] = from_bits<TypeParam>(low[n]);
    v[width + n] = from_bits<TypeParam>(low[n] + 1);
  }
  for (const std::string& name : available_isas())
    for (const int64_t queries : {1, 7}) {
      set_isa(name);
      const std::vector<TypeParam> out = means<TypeParam, TypeParam>(v, 2, queries);
      for (size_t n = 0; n < out.size(); ++n) {
        const int bits = low[n % width];
        // The sum of the two largest numbers of bfloat16 is beyond float32.
        if (std::abs(2.0 * meaning_of(from_bits<TypeParam>(bits + 1))) >
            std::numeric_limits<float>::max())
          continue;
        const int even = bits % 2 == 0 ? bits : bits + 1;
        if (out[n].bits != even)
          ADD_FAILURE() << name << ": between " << bits << " and " << bits + 1 << " came "
                        << out[n].bits;
      }
    }
  set_isa("best");
}

}  // namespace
}  // namespace locant
