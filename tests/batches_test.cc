// Batches of every shape, for every encoding and element type, against the float64 reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/attention_case.h"

namespace locant {
namespace {

// What a batch is made of; the vectors are what options point into.
struct Batch {
  Sizes sizes;
  std::vector<int64_t> lengths;
  std::vector<Sequence> sequences;
  AttendOptions options;
};

Batch left_padded() {
  Batch b{.sizes = {.batch = 3, .heads = 4, .kv_heads = 2, .q_len = 45, .k_len = 45, .dim = 24},
          .lengths = {45, 17, 1},
          .sequences = {},
          .options = {}};
  b.options.left_padded = true;
  b.options.causal = true;
  return b;
}

Batch prefix() {
  Batch b{.sizes = {.batch = 2, .heads = 4, .q_len = 50, .k_len = 50, .dim = 24},
          .lengths = {50, 31},
          .sequences = {},
          .options = {}};
  b.options.causal = true;
  b.options.prefix = 20;
  return b;
}

// One query each, behind caches of different lengths.
Batch ragged_decode() {
  Batch b{.sizes = {.batch = 4, .heads = 4, .kv_heads = 2, .q_len = 1, .k_len = 300, .dim = 24},
          .lengths = {},
          .sequences = {},
          .options = {}};
  const int64_t cached[] = {300, 1, 77, 256};
  for (int64_t n = 0; n < 4; ++n)
    b.sequences.push_back({.batch = n, .q_len = 1, .k_len = cached[n], .q_start = cached[n] - 1});
  b.options.causal = true;
  return b;
}

// Three sequences in one row, one in the other; some rows belong to none.
Batch packed() {
  Batch b{.sizes = {.batch = 2, .heads = 4, .q_len = 70, .k_len = 70, .dim = 24},
          .lengths = {},
          .sequences = {},
          .options = {}};
  const auto whole = [&](int64_t batch, int64_t begin, int64_t length) {
    b.sequences.push_back(
        {.batch = batch, .q_begin = begin, .q_len = length, .k_begin = begin, .k_len = length});
  };
  whole(0, 0, 33);
  whole(0, 33, 1);
  whole(0, 36, 34);
  whole(1, 5, 60);
  return b;
}

struct BatchKindUnderTest {
  std::string name;
  std::function<Batch()> make;
};

void PrintTo(const BatchKindUnderTest& kind, std::ostream* out) {
  *out << kind.name;
}

class Batches : public testing::TestWithParam<BatchKindUnderTest> {};

TEST_P(Batches, EveryEncodingAndElementTypeGivesTheReferencesResult) {
  std::map<std::string, double> worst;
  for (const EncodingEntry& entry : encodings())
    for (const DType dtype : kFloatingTypes) {
      const Batch batch = GetParam().make();
      AttentionCase c(entry, dtype, batch.sizes);
      c.options = batch.options;
      c.options.lengths = batch.lengths;
      c.options.sequences = batch.sequences;
      double& error = worst[name_of(dtype)];
      error = std::max(error, c.expect_reference());
    }
  for (const auto& [dtype, error] : worst)
    std::printf("%-14s %-5s worst error %.1e over %zu encodings\n", GetParam().name.c_str(),
                dtype.c_str(), error, encodings().size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Batches,
                         testing::Values(BatchKindUnderTest{"left_padded", left_padded},
                                         BatchKindUnderTest{"prefix", prefix},
                                         BatchKindUnderTest{"ragged_decode", ragged_decode},
                                         BatchKindUnderTest{"packed", packed}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace locant
