#include "locant/attention/stats.h"

#include <atomic>

#include "locant/attention/counters.h"

namespace locant::inline v0 {
namespace {

std::atomic<int64_t> fused_calls{0}, fused_tiles{0}, materialized_calls{0};
std::atomic<int64_t> backward_calls{0}, backward_tiles{0};

}  // namespace

Stats stats() {
  return {.fused_calls = fused_calls.load(),
          .fused_tiles = fused_tiles.load(),
          .backward_calls = backward_calls.load(),
          .backward_tiles = backward_tiles.load(),
          .materialized_calls = materialized_calls.load()};
}

void count_fused(int64_t calls, int64_t tiles) {
  fused_calls.fetch_add(calls, std::memory_order_relaxed);
  fused_tiles.fetch_add(tiles, std::memory_order_relaxed);
}

void count_fused_backward(int64_t calls, int64_t tiles) {
  backward_calls.fetch_add(calls, std::memory_order_relaxed);
  backward_tiles.fetch_add(tiles, std::memory_order_relaxed);
}

void count_materialized() {
  materialized_calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace locant::inline v0
