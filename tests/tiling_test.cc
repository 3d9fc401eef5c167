// Tile sizes that a caller forces: any size from 1 on gives the reference's result.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "locant/core/executor.h"
#include "locant/layers/attend_backward.h"
#include "tests/attention_case.h"

namespace locant {
namespace {

constexpr int64_t kHuge[] = {int64_t{1} << 31, int64_t{1} << 62,
                             std::numeric_limits<int64_t>::max() - 31,
                             std::numeric_limits<int64_t>::max()};

TEST(Tiling, BeyondTheLengthsIsTheLengths) {
  for (const EncodingEntry& entry : encodings())
    for (const int64_t queries : {3, 40}) {  // in place, and packed
      AttentionCase c(entry, DType::f32, {.q_len = queries, .k_len = 45});
      c.options.tiling = {.rows = queries, .keys = 45};
      c.expect_reference();
      const std::vector<double> out = c.out.values();
      for (const int64_t huge : kHuge)
        for (const Tiling tiling : {Tiling{huge, 0}, Tiling{0, huge}, Tiling{huge, huge}}) {
          c.options.tiling = tiling;
          c.run();
          EXPECT_EQ(c.out.values(), out) << c.label << " " << tiling.rows << " " << tiling.keys;
        }
    }
}

TEST(Tiling, BeyondTheLengthsIsTheLengthsBackward) {
  const Sizes sizes{.q_len = 40, .k_len = 45};
  for (const EncodingEntry& entry : encodings()) {
    std::vector<std::vector<double>> results;
    std::vector<Tiling> tilings = {{40, 45}};
    for (const int64_t huge : kHuge) tilings.push_back({huge, huge});
    for (const Tiling& tiling : tilings) {
      AttentionCase c(entry, DType::f32, sizes);
      c.options.tiling = tiling;
      c.run();
      const StoredTensor dq(DType::f32, {1, 2, 40, 8}), dk(DType::f32, {1, 2, 45, 8}),
          dv(DType::f32, {1, 2, 45, 8});
      attend_backward(c.q.view(), c.k.view(), c.v.view(), *c.encoding, c.options,
                      {c.out.view(), c.lse.view()}, c.q.view(), dq.view(), dk.view(), dv.view());
      std::vector<double>& all = results.emplace_back(dq.values());
      for (const StoredTensor* x : {&dk, &dv})
        for (const double value : x->values()) all.push_back(value);
    }
    for (const std::vector<double>& result : results) EXPECT_EQ(result, results[0]) << entry.name;
  }
}

// One query against keys that are split over items, and blocks that the splits do not begin at.
// Under a causal mask it sees the first key only, so that all items but one have nothing to do.
TEST(Tiling, ItemsOfKeysThatNobodySees) {
  const int before = num_threads();
  set_num_threads(1);
  for (const EncodingEntry& entry : encodings())
    for (const int64_t queries : {1, 3})
      for (const int64_t keys : {96, 160, 224}) {
        // Leaves numbers in the thread's scratch memory that no count or index can be.
        AttentionCase earlier(entry, DType::f32,
                              {.heads = 1, .q_len = 600, .k_len = 600, .dim = 32});
        earlier.run();
        AttentionCase c(entry, DType::f32,
                        {.heads = 1, .q_len = queries, .k_len = 6436, .dim = 32});
        c.options.causal = true;
        c.options.tiling.keys = keys;
        c.expect_reference();
      }
  set_num_threads(before);
}

}  // namespace
}  // namespace locant
