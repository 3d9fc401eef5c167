// Counters that let tests and users prove which path ran.
#pragma once

#include <cstdint>

#include "locant/core/api.h"

namespace locant::inline v0 {

struct Stats {
  int64_t fused_calls = 0;     // attend() calls that took the fused kernel
  int64_t fused_tiles = 0;     // (rows × keys) tiles it computed
  int64_t backward_calls = 0;  // fused backward passes
  int64_t backward_tiles = 0;
  int64_t materialized_calls = 0;
};

// Counts since the process began; the difference of two of them tells what a call did.
LOCANT_API Stats stats();

}  // namespace locant::inline v0
