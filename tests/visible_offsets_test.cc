// Problem::visible_offsets against every visible pair, one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "locant/terms/problem.h"

namespace locant {
namespace {

struct Pairs {
  bool any = false;
  Problem::Offsets offsets;
};

Pairs visible_pairs(const Problem& p) {
  Pairs out;
  for (const Sequence& s : p.sequences)
    for (int64_t i = 0; i < s.q_len; ++i) {
      const KeyRange range = p.visible(s, i);
      for (int64_t j = range.begin; j < range.end; ++j) {
        const int64_t offset = (j + s.k_start) - (i + s.q_start);
        out.offsets.first = out.any ? std::min(out.offsets.first, offset) : offset;
        out.offsets.last = out.any ? std::max(out.offsets.last, offset) : offset;
        out.any = true;
      }
    }
  return out;
}

TEST(VisibleOffsets, HoldEveryVisiblePairAndNoMoreThanAllPairs) {
  for (const bool causal : {false, true})
    for (const int64_t left : {-1, 0, 4, 50})
      for (const int64_t right : {-1, 0, 3, 50})
        for (const int64_t prefix : {0, 5})
          for (const int64_t q_start : {0, 9, -20}) {
            Problem p;
            p.sequences = {{.q_len = 7, .k_len = 12, .q_start = q_start, .prefix = prefix},
                           {.q_len = 3, .k_len = 6, .k_start = 2}};
            p.causal = causal;
            p.window_left = left;
            p.window_right = right;
            const Problem::Offsets found = p.visible_offsets(), all = p.offsets();
            EXPECT_LE(found.first, found.last);
            EXPECT_GE(found.first, all.first);
            const Pairs pairs = visible_pairs(p);
            if (!pairs.any) continue;
            EXPECT_LE(found.first, pairs.offsets.first);
            EXPECT_GE(found.last, pairs.offsets.last);
            EXPECT_LE(found.last, all.last);
          }
}

TEST(VisibleOffsets, AreAsFewAsCausalAndWindowAllow) {
  Problem p;
  p.sequences = {{.q_len = 1000, .k_len = 1000}};
  p.causal = true;
  EXPECT_EQ(p.visible_offsets().first, -999);
  EXPECT_EQ(p.visible_offsets().last, 0);
  p.causal = false;
  p.window_left = 8;
  p.window_right = 2;
  EXPECT_EQ(p.visible_offsets().first, -8);
  EXPECT_EQ(p.visible_offsets().last, 2);
}

TEST(VisibleOffsets, AreAllOffsetsWhenPositionsAreTheCallers) {
  const int64_t ids[] = {5, 100, 3};
  Problem p;
  p.batch = 1;
  p.q_len = p.k_len = 3;
  p.sequences = {{.q_len = 3, .k_len = 3}};
  p.causal = true;
  p.q_positions = p.k_positions = view(ids, {1, 3});
  EXPECT_EQ(p.visible_offsets().first, -97);
  EXPECT_EQ(p.visible_offsets().last, 97);
}

}  // namespace
}  // namespace locant
