// Random numbers that are the same on every machine and standard library.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)

  double symmetric() { return (2 * unit() - 1) * 1.7320508075688772; }  // mean 0, variance 1

 private:
  uint64_t state_;
};

}  // namespace locant::inline v0
