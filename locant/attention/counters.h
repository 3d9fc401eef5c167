// What stats() reports is counted here, once at the end of each call.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

void count_fused(int64_t calls, int64_t tiles);
void count_fused_backward(int64_t calls, int64_t tiles);
void count_materialized();

}  // namespace locant::inline v0
