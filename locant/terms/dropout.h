// Attention dropout without state: whether a pair is dropped is a function of the seed, the
// sequence's index, the head and the pair's own indices. So forward and backward, any number of
// threads and any tiling see the same mask.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

struct Dropout {
  double p = 0;  // probability of dropping a pair, 0 <= p < 1; kept ones are divided by 1 - p
  uint64_t seed = 0;

  // A pair is dropped if its hash, without the last bit, is below this. (31 bits, since vectors
  // compare signed numbers.)
  int32_t threshold() const { return static_cast<int32_t>(p * 0x1p31); }
  double keep_scale() const { return 1 / (1 - p); }
};

// The part of the key that all pairs of a query share.
struct DropoutRow {
  uint32_t a = 0, b = 0;
};

// Steele, Lea and Flood's SplitMix64 finaliser, chained over the four numbers.
inline DropoutRow dropout_row(uint64_t seed, int64_t sequence, int64_t head, int64_t i) {
  uint64_t x = seed;
  for (const int64_t next : {sequence, head, i}) {
    x = (x ^ static_cast<uint64_t>(next)) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
  }
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}

// Two rounds of a 32-bit finaliser (Wellons' lowbias32), so that lanes can do it.
inline uint32_t dropout_hash(DropoutRow row, uint32_t j) {
  uint32_t x = j ^ row.a;
  for (const uint32_t key : {row.b, 0u}) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) ^ key;
  }
  return x;
}

// Whether pair (i, j) of that row is left out.
inline bool is_dropped(DropoutRow row, uint32_t j, int32_t threshold) {
  return static_cast<int32_t>(dropout_hash(row, j) >> 1) < threshold;
}

}  // namespace locant::inline v0
