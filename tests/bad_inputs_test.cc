// Inputs that have broken other kernels: sizes, hidden and live NaN, extreme scores and masks,
// strides. Every encoding of the registry; docs/bad_inputs.md lists the classes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/message_of.h"

namespace locant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// --- sizes ---------------------------------------------------------------------------------------

TEST(BadSizes, LengthsZeroAndOne) {
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t q_len : {0, 1, 5})
        for (const int64_t k_len : {0, 1, 5}) {
          AttentionCase c(entry, dtype, {.batch = 2, .q_len = q_len, .k_len = k_len});
          c.expect_reference();
          if (k_len > 0) continue;
          for (const double x : c.out.values()) EXPECT_EQ(x, 0) << c.label;
          for (const double x : c.lse.values()) EXPECT_EQ(x, -kInfinity) << c.label;
        }
}

TEST(BadSizes, UnequalLengths) {
  for (const EncodingEntry& entry : encodings())
    for (const auto& [q_len, k_len] : {std::pair(3, 130), std::pair(130, 3), std::pair(61, 70)}) {
      AttentionCase c(entry, DType::f32, {.q_len = q_len, .k_len = k_len});
      c.expect_reference();
    }
}

TEST(BadSizes, LengthsAroundTheTunedTile) {
  // Keys per block are 256 or 512; query rows per item for one head from 96 on.
  for (const EncodingEntry& entry : encodings())
    for (const int64_t edge : {96, 256, 512})
      for (const int64_t length : {edge - 1, edge, edge + 1}) {
        AttentionCase c(entry, DType::f32, {.heads = 1, .q_len = length, .k_len = length});
        c.expect_reference();
      }
}

TEST(BadSizes, HeadDims) {
  for (const int64_t dim : {1, 3, 40, 64, 80, 96, 128, 256, 320})
    for (const EncodingEntry* entry : encodings_with(2, dim))
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const int64_t q_len : {2, 13}) {
          AttentionCase c(*entry, dtype, {.q_len = q_len, .k_len = 45, .dim = dim});
          c.options.scale = 1 / std::sqrt(static_cast<double>(dim));  // T5's own is 1
          c.expect_reference();
        }
}

TEST(BadSizes, ValuesOfAnotherWidth) {
  int computed = 0;
  for (const EncodingEntry& entry : encodings())
    for (const int64_t value_dim : {1, 7, 40}) {
      AttentionCase c(entry, DType::f32, {.q_len = 9, .k_len = 33, .value_dim = value_dim});
      const std::string message = message_of([&] { c.run(); });
      if (message == "no error") {
        c.expect_reference();
        ++computed;
      } else {  // relative values are added to v
        EXPECT_NE(message.find("width"), std::string::npos) << message;
      }
    }
  EXPECT_GE(computed, 9) << "only encodings with relative values may refuse";
}

TEST(BadSizes, NoBatchAndNoHeads) {
  for (const EncodingEntry& entry : encodings()) {
    AttentionCase empty(entry, DType::f32, {.batch = 0, .q_len = 4, .k_len = 4});
    empty.run();
    const auto encoding = entry.make({{"heads", 2}, {"head_dim", 8}});
    const StoredTensor x(DType::f32, {3, 0, 4, 8});
    attend(x.view(), x.view(), x.view(), *encoding, {}, x.view());
  }
}

// --- what is hidden, and what is not
// --------------------------------------------------------------

constexpr int64_t kQueries = 20, kKeys = 40, kHiddenKey = 33;

// A way to hide kHiddenKey from all queries.
struct Hiding {
  std::string name;
  std::function<void(AttendOptions&)> apply;
};

// A boolean and an additive mask that hide kHiddenKey from everybody.
struct HidingMasks {
  HidingMasks() : additive(DType::f32, {kQueries, kKeys}) {
    for (int64_t n = 0; n < kQueries * kKeys; ++n) {
      const bool hidden = n % kKeys == kHiddenKey;
      boolean[n] = !hidden;
      additive.set(n, hidden ? -kInfinity : 0.25);
    }
  }
  bool boolean[kQueries * kKeys];
  StoredTensor additive;
};

std::vector<Hiding> ways_to_hide(const HidingMasks& masks) {
  static const int64_t q_lengths[] = {kQueries}, k_lengths[] = {kHiddenKey};
  return {{"causal", [](AttendOptions& o) { o.causal = true; }},
          {"window",
           [](AttendOptions& o) {
             o.window_left = 9;
             o.window_right = 2;
           }},
          {"padding",
           [](AttendOptions& o) {
             o.lengths = q_lengths;
             o.k_lengths = k_lengths;
           }},
          {"boolean mask",
           [&masks](AttendOptions& o) {
             o.mask = view(masks.boolean, {kQueries, kKeys});
           }},
          {"additive mask", [&masks](AttendOptions& o) { o.mask = masks.additive.view(); }}};
}

// Puts `value` into one row of k or v, everywhere.
void spoil_row(StoredTensor& x, int64_t row, double value) {
  const View v = x.view();
  for (int64_t n = 0; n < x.size(); ++n)
    if (n / v.shape[3] % v.shape[2] == row) x.set(n, value);
}

TEST(HiddenKeys, NaNAndInfinityDoNotLeak) {
  const HidingMasks masks;
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t q_len : {kQueries, int64_t{2}})  // packed, and in place
        for (const Hiding& hiding : ways_to_hide(masks)) {
          if (q_len != kQueries && (hiding.name.ends_with("mask") || hiding.name == "padding"))
            continue;  // made for kQueries
          AttentionCase c(entry, dtype, {.q_len = q_len, .k_len = kKeys});
          hiding.apply(c.options);
          spoil_row(c.k, kHiddenKey, 0);
          spoil_row(c.v, kHiddenKey, 0);
          c.run();
          const std::vector<double> clean = c.out.values(), clean_lse = c.lse.values();
          for (const double poison : {kNaN, kInfinity, -kInfinity}) {
            spoil_row(c.k, kHiddenKey, poison);
            spoil_row(c.v, kHiddenKey, poison);
            c.run();
            EXPECT_EQ(c.out.values(), clean) << c.label << " " << hiding.name << " " << poison;
            EXPECT_EQ(c.lse.values(), clean_lse) << c.label << " " << hiding.name;
          }
        }
}

// Which rows of out hold a NaN: exactly those for which `expected(query)`.
void expect_nan_rows(const AttentionCase& c, const std::vector<double>& clean,
                     const std::function<bool(int64_t)>& expected) {
  const View out = c.out.view();
  const int64_t q_len = out.shape[2], width = out.shape[3];
  const std::vector<double> values = c.out.values();
  for (int64_t row = 0; row < c.out.size() / width; ++row) {
    bool any = false, same = true;
    for (int64_t n = row * width; n < (row + 1) * width; ++n) {
      any = any || std::isnan(values[n]);
      same = same && values[n] == clean[n];
    }
    if (expected(row % q_len)) {
      EXPECT_TRUE(any) << c.label << ": a NaN that query " << row % q_len << " sees is lost";
    } else {
      EXPECT_TRUE(same) << c.label << ": query " << row % q_len << " sees no NaN but changed";
    }
  }
}

TEST(LiveInputs, NaNShowsInExactlyTheRowsThatSeeIt) {
  constexpr int64_t kRow = 6;
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t q_len : {int64_t{2}, kQueries}) {
        AttentionCase c(entry, dtype, {.q_len = q_len, .k_len = kKeys});
        c.options.causal = true;
        c.options.q_start = q_len == 2 ? kRow - 1 : 0;  // two queries: 5 and 6
        const int64_t first = c.options.q_start;
        c.run();
        const std::vector<double> clean = c.out.values();
        for (StoredTensor* x : {&c.k, &c.v}) {
          const std::vector<double> before = x->values();
          spoil_row(*x, kRow, kNaN);
          c.run();
          expect_nan_rows(c, clean, [&](int64_t i) { return first + i >= kRow; });
          for (int64_t n = 0; n < x->size(); ++n) x->set(n, before[n]);
        }
        spoil_row(c.q, 1, kNaN);
        c.run();
        expect_nan_rows(c, clean, [](int64_t i) { return i == 1; });
      }
}

TEST(FullyMaskedRows, AreZerosAndMinusInfinity) {
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t q_len : {int64_t{3}, kQueries}) {
        AttentionCase c(entry, dtype, {.q_len = q_len, .k_len = kKeys});
        StoredTensor mask(dtype, {q_len, kKeys});
        for (int64_t n = 0; n < mask.size(); ++n) mask.set(n, n / kKeys == 1 ? -kInfinity : 0);
        c.options.mask = mask.view();
        c.expect_reference();
        for (int64_t h = 0; h < 2; ++h) {
          EXPECT_EQ(c.lse.get(h * q_len + 1), -kInfinity) << c.label;
          EXPECT_TRUE(std::isfinite(c.lse.get(h * q_len))) << c.label;
          for (int64_t n = 0; n < 8; ++n) EXPECT_EQ(c.out.get((h * q_len + 1) * 8 + n), 0);
        }
      }
}

// --- extreme numbers -----------------------------------------------------------------------------

TEST(ExtremeScores, OfPlusAndMinusTenThousandStayExact) {
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      AttentionCase c(entry, dtype, {.q_len = 17, .k_len = 40});
      c.options.scale = 1.0;
      // ±16, ±32 and ±48: products are integers, and sums of them exact.
      for (StoredTensor* x : {&c.q, &c.k})
        for (int64_t n = 0; n < x->size(); ++n)
          x->set(n, 16 * std::round(x->get(n) / std::abs(x->get(n)) * (1 + n % 3)));
      for (StoredTensor& table : c.tables)
        for (int64_t n = 0; n < table.size(); ++n) table.set(n, std::round(4 * table.get(n)));
      c.expect_reference();
      double top = 0;
      for (const double x : c.lse.values()) top = std::max(top, std::abs(x));
      EXPECT_GT(top, 3000) << c.label;
      for (const double x : c.out.values()) EXPECT_TRUE(std::isfinite(x)) << c.label;
    }
}

TEST(ExtremeMasks, LowestFiniteValuesAndMinusInfinity) {
  struct Lowest {
    DType dtype;
    double value;
  };
  const double float_max = std::numeric_limits<float>::max();
  for (const EncodingEntry& entry : encodings())
    for (const Lowest& lowest : {Lowest{DType::f32, -float_max}, Lowest{DType::f64, -float_max},
                                 Lowest{DType::bf16, -0x1.fep127}, Lowest{DType::f16, -65504}}) {
      AttentionCase c(entry, DType::f32, {.q_len = 7, .k_len = kKeys});
      StoredTensor mask(lowest.dtype, {7, kKeys});
      for (int64_t n = 0; n < mask.size(); ++n) {
        const int64_t i = n / kKeys, j = n % kKeys;
        // Query 2 has nothing better; query 3 nothing but one such key, all others -inf.
        const bool hidden = (i == 3 && j != 5) || j % 7 == 1;
        mask.set(
            n, hidden && i != 2 ? -kInfinity : (j % 2 == 0 || i == 2 || i == 3 ? lowest.value : 0));
      }
      c.options.mask = mask.view();
      c.expect_reference();
      for (const double x : c.out.values()) EXPECT_TRUE(std::isfinite(x)) << c.label;
    }
}

// --- strides -------------------------------------------------------------------------------------

// The tensor's numbers in other places.
struct Layout {
  std::string name;
  Extents order;  // axes by position in memory, outermost first
  bool backwards = false;
  int64_t gap = 0;     // elements between rows of d
  int64_t offset = 0;  // elements before the first
};

struct Placed {
  std::vector<std::byte> bytes;
  ConstView view;
};

Placed place(const StoredTensor& x, const Layout& layout) {
  const ConstView from = x.view();
  Extents strides = {0, 0, 0, 0};
  int64_t stride = 1;
  for (int n = 3; n >= 0; --n) {
    const auto axis = static_cast<size_t>(layout.order[n]);
    strides[axis] = stride;
    stride = stride * from.shape[axis] + (n == 3 ? layout.gap : 0);
  }
  Placed out;
  const int64_t width = static_cast<int64_t>(size_of(from.dtype));
  out.bytes.resize((stride + layout.offset) * width);
  View to(out.bytes.data() + layout.offset * width, from.dtype, from.shape, strides);
  if (layout.backwards) to = to.reversed(2).reversed(3);
  for (int64_t a = 0; a < from.shape[0]; ++a)
    for (int64_t b = 0; b < from.shape[1]; ++b)
      for (int64_t c = 0; c < from.shape[2]; ++c)
        for (int64_t e = 0; e < from.shape[3]; ++e)
          set_element(to, element(from, a, b, c, e), a, b, c, e);
  out.view = to;
  return out;
}

TEST(Strides, EveryLayoutGivesTheSameBits) {
  const Layout layouts[] = {{"transposed", {0, 2, 1, 3}},
                            {"column major", {3, 2, 1, 0}},
                            {"part of wider rows (fused QKV)", {0, 2, 1, 3}, false, 48},
                            {"backwards", {0, 1, 2, 3}, true},
                            {"aligned to one element", {0, 1, 2, 3}, false, 0, 1}};
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t q_len : {2, 19}) {
        AttentionCase c(entry, dtype, {.batch = 2, .q_len = q_len, .k_len = 43, .dim = 24});
        c.run();
        const std::vector<double> expected = c.out.values();
        for (const Layout& layout : layouts) {
          // Few queries read contiguous rows in place and sum in another order than packed ones.
          const bool contiguous_rows = layout.order[3] == 3 && !layout.backwards;
          if (q_len <= 4 && !contiguous_rows) continue;
          const Placed q = place(c.q, layout), k = place(c.k, layout), v = place(c.v, layout);
          attend(q.view, k.view, v.view, *c.encoding, c.options, c.out.view());
          EXPECT_EQ(c.out.values(), expected) << c.label << " " << layout.name;
        }
      }
}

TEST(Strides, ZeroRepeatsOneSequence) {
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes) {
      AttentionCase one(entry, dtype, {.q_len = 19, .k_len = 43});
      one.run();
      const auto repeated = [](const StoredTensor& x) {
        ConstView view = x.view();
        view.shape[0] = 3;
        view.strides[0] = 0;
        return view;
      };
      const StoredTensor out(computed_in(dtype), {3, 2, 19, 8});
      attend(repeated(one.q), repeated(one.k), repeated(one.v), *one.encoding, {}, out.view());
      const std::vector<double> expected = one.out.values(), all = out.values();
      for (size_t n = 0; n < all.size(); ++n)
        EXPECT_EQ(all[n], expected[n % expected.size()]) << one.label;
    }
}

// --- positions -----------------------------------------------------------------------------------

TEST(Positions, ZeroBeyondFloat32AndNegative) {
  constexpr int64_t kOdd = (int64_t{1} << 24) + 1;  // float32 cannot hold it
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes)
      for (const int64_t start : {int64_t{0}, kOdd, -kOdd, int64_t{-7}}) {
        AttentionCase c(entry, dtype, {.q_len = 21, .k_len = 43});
        c.options.q_start = start + 22;
        c.options.k_start = start;
        c.options.causal = true;
        c.expect_reference();
      }
}

}  // namespace
}  // namespace locant
