// Queries that see nothing, with NaN or infinity in q: zeros, lse -inf and no gradient, whatever
// they hold; and that a NaN which somebody sees is still seen.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "locant/layers/attend_backward.h"
#include "tests/attention_case.h"

namespace locant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kKeys = 70, kMasked = 1, kDim = 8, kHeads = 2;

// Query kMasked sees nothing; with segments where the encoding has a term for them.
class MaskedQuery {
 public:
  MaskedQuery(const EncodingEntry& entry, DType dtype, int64_t queries, int64_t start)
      : c(entry, dtype, {.q_len = queries, .k_len = kKeys}),
        queries_(queries),
        visible_(new bool[queries * kKeys]),
        q_ids_(queries, 0),
        k_ids_(kKeys, 1) {
    for (int64_t n = 0; n < queries * kKeys; ++n) visible_[n] = n / kKeys != kMasked;
    for (int64_t j = kKeys / 2; j < kKeys; ++j) k_ids_[j] = 0;
    c.options.mask = view(visible_.get(), {queries, kKeys});
    // Far from the keys a clipped table is one row, and what it gives a number for the whole row.
    c.options.q_start = start;
    if (c.encoding->uses_segments()) {
      c.options.q_segments = view(q_ids_.data(), {1, queries});
      c.options.k_segments = view(k_ids_.data(), {1, kKeys});
    }
  }

  void spoil(double value) {
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t e = 0; e < kDim; ++e) c.q.set((h * queries_ + kMasked) * kDim + e, value);
  }
  void show_key(int64_t key) { visible_[kMasked * kKeys + key] = true; }

  // Row kMasked of `x` (heads, queries, width).
  std::vector<double> masked_row(const StoredTensor& x, int64_t width) const {
    std::vector<double> out;
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t e = 0; e < width; ++e)
        out.push_back(x.get((h * queries_ + kMasked) * width + e));
    return out;
  }

  AttentionCase c;

 private:
  int64_t queries_;
  std::unique_ptr<bool[]> visible_;
  std::vector<int64_t> q_ids_, k_ids_;
};

TEST(FullyMaskedRows, HideWhateverTheirQueriesHold) {
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const int64_t queries : {3, 20})  // in place, and packed
        for (const int64_t start : {0, 1000}) {
          MaskedQuery m(entry, dtype, queries, start);
          m.spoil(0);
          m.c.run();
          const std::vector<double> clean = m.c.out.values(), clean_lse = m.c.lse.values();
          EXPECT_EQ(m.masked_row(m.c.out, kDim), std::vector<double>(kHeads * kDim, 0.0));
          EXPECT_EQ(m.masked_row(m.c.lse, 1), std::vector<double>(kHeads, -kInfinity));
          for (const double poison : {kNaN, kInfinity, -kInfinity}) {
            m.spoil(poison);
            m.c.run();
            EXPECT_EQ(m.c.out.values(), clean) << m.c.label << " from " << start << " " << poison;
            EXPECT_EQ(m.c.lse.values(), clean_lse)
                << m.c.label << " from " << start << " " << poison;
          }
        }
}

TEST(FullyMaskedRows, AKeyInSightShowsTheNaNOfItsQuery) {
  for (const EncodingEntry& entry : encodings())
    for (const int64_t queries : {3, 20})
      for (const int64_t start : {0, 1000}) {
        MaskedQuery m(entry, DType::f32, queries, start);
        m.spoil(kNaN);
        m.show_key(40);
        m.c.run();
        for (const double x : m.masked_row(m.c.out, kDim)) EXPECT_TRUE(std::isnan(x)) << m.c.label;
        for (const double x : m.masked_row(m.c.lse, 1)) EXPECT_TRUE(std::isnan(x)) << m.c.label;
      }
}

// d(q), d(k), d(v) and the gradients of all parameters, one after another.
std::vector<double> gradients_of(AttentionCase& c, int64_t queries, double dropout) {
  c.options.dropout = {.p = dropout, .seed = 5};
  c.run();
  StoredTensor dout(DType::f32, {1, kHeads, queries, kDim}, 77);
  StoredTensor dq(DType::f32, {1, kHeads, queries, kDim}), dk(DType::f32, {1, kHeads, kKeys, kDim}),
      dv(DType::f32, {1, kHeads, kKeys, kDim});
  const ParameterGradients parameters =
      attend_backward(c.q.view(), c.k.view(), c.v.view(), *c.encoding, c.options,
                      {c.out.view(), c.lse.view()}, dout.view(), dq.view(), dk.view(), dv.view());
  std::vector<double> all;
  for (const StoredTensor* x : {&dq, &dk, &dv})
    for (const double value : x->values()) all.push_back(value);
  for (const auto& [name, gradient] : parameters) {
    const ConstView view = gradient.view();
    for (int64_t n = 0; n < view.size(); ++n)
      all.push_back(*(view.at<float>() + n));  // a Tensor is contiguous
  }
  return all;
}

TEST(FullyMaskedRows, HaveNoGradientWhateverTheirQueriesHold) {
  constexpr int64_t kQueries = 20;
  for (const EncodingEntry& entry : encodings())
    for (const int64_t start : {0, 1000})
      for (const double dropout : {0.0, 0.3}) {
        MaskedQuery m(entry, DType::f32, kQueries, start);
        m.spoil(0);
        const std::vector<double> clean = gradients_of(m.c, kQueries, dropout);
        for (int64_t h = 0; h < kHeads; ++h)
          for (int64_t e = 0; e < kDim; ++e)
            EXPECT_EQ(clean[(h * kQueries + kMasked) * kDim + e], 0) << m.c.label;
        for (const double poison : {kNaN, kInfinity}) {
          m.spoil(poison);
          EXPECT_EQ(gradients_of(m.c, kQueries, dropout), clean)
              << m.c.label << " from " << start << " " << poison << " dropout " << dropout;
        }
      }
}

}  // namespace
}  // namespace locant
