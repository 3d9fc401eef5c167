// How exact float32 attention is, in units in the last place, near and far from position 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "locant/encodings/registry.h"

namespace locant::inline v0 {

struct UlpResult {
  std::string isa;  // "loops": the reference's loops in float32, in the same unit
  int64_t results = 0;
  double worst = 0, p99 = 0;
};

// Errors of `out` against the float64 reference for all configurations of an encoding at positions
// 0, 2^10, 2^16 and 2^20. The unit is the distance of float32 numbers at the largest result of the
// head: a result near 0 is a sum of values that cancel, and cannot be right to its own unit. One
// result for each of `isas`, and one for the loops.
std::vector<UlpResult> measure_ulp(const EncodingEntry& entry, std::span<const std::string> isas);

}  // namespace locant::inline v0
