// Few queries against many keys: read in place, keys split over work items, results merged.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"
#include "tests/every_encoding.h"

namespace locant {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 24, kKeys = 4999;  // three splits of 2048

struct DecodeInputs {
  explicit DecodeInputs(int64_t queries)
      : q(kHeads * queries * kDim), k(kKvHeads * kKeys * kDim), v(k.size()), queries(queries) {
    uint32_t state = 7;
    for (std::vector<float>* values : {&q, &k, &v})
      for (float& value : *values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
      }
  }
  ConstView q_view() const { return view(q.data(), {1, kHeads, queries, kDim}); }
  ConstView k_view() const { return view(k.data(), {1, kKvHeads, kKeys, kDim}); }
  ConstView v_view() const { return view(v.data(), {1, kKvHeads, kKeys, kDim}); }

  std::vector<float> q, k, v;
  int64_t queries;
};

class Decode : public testing::TestWithParam<std::string> {};

TEST_P(Decode, SplitKeysGiveTheReferencesResult) {
  const std::unique_ptr<Encoding> encoding =
      make_encoding(GetParam(), {{"heads", kHeads}, {"head_dim", kDim}});
  encoding->init(3);
  for (const int64_t queries : {1, 3, 7}) {  // in place, in place, packed
    const DecodeInputs in(queries);
    AttendOptions options;
    options.causal = true;
    options.q_start = kKeys - queries;
    const size_t size = in.q.size(), rows = size / kDim;
    std::vector<float> out(size), lse(rows), naive(size);
    std::vector<double> exact(size), exact_lse(rows);

    options.lse = view(exact_lse.data(), {1, kHeads, queries});
    attend_reference(in.q_view(), in.k_view(), in.v_view(), *encoding, options,
                     view(exact.data(), {1, kHeads, queries, kDim}));
    options.lse = {};
    attend_naive_f32(in.q_view(), in.k_view(), in.v_view(), *encoding, options,
                     view(naive.data(), {1, kHeads, queries, kDim}));
    options.lse = view(lse.data(), {1, kHeads, queries});
    attend(in.q_view(), in.k_view(), in.v_view(), *encoding, options,
           view(out.data(), {1, kHeads, queries, kDim}));

    double naive_error = 0;
    for (size_t n = 0; n < size; ++n)
      naive_error = std::max(naive_error, std::abs(naive[n] - exact[n]));
    for (size_t n = 0; n < size; ++n) EXPECT_NEAR(out[n], exact[n], 2 * naive_error + 1e-6);
    for (size_t n = 0; n < rows; ++n) EXPECT_NEAR(lse[n], exact_lse[n], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, Decode, testing::ValuesIn(every_encoding()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace locant
