// Counters that let tests and users prove which path ran.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

struct Stats {
  int64_t fused_calls = 0;  // attend() calls that took the fused kernel
  int64_t fused_tiles = 0;  // (rows × keys) tiles it computed
  int64_t materialized_calls = 0;
};

Stats stats();
void count_fused(int64_t calls, int64_t tiles);
void count_materialized();

}  // namespace locant::inline v0
