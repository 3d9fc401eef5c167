// Configurations for the conformance checks, small enough that lengths near 100 reach every regime.
#include "locant/encodings/deberta/deberta.h"

namespace locant::inline v0 {

std::vector<FieldValues> Deberta::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 4}, {"head_dim", 16}, {"position_buckets", 16}, {"max_relative_positions", 64}},
      {{"heads", 2},
       {"head_dim", 8},
       {"position_buckets", 16},
       {"max_relative_positions", 64},
       {"far", "clamp"}},
      {{"heads", 2},
       {"head_dim", 16},
       {"position_buckets", 16},
       {"max_relative_positions", 48},
       {"p2p", true}},
      {{"heads", 2}, {"head_dim", 24}, {"position_buckets", 0}, {"max_relative_positions", 40}},
      {{"heads", 2},
       {"head_dim", 8},
       {"position_buckets", 0},
       {"max_relative_positions", 24},
       {"far", "clamp"},
       {"p2p", true}},
      {{"heads", 2}, {"head_dim", 16}, {"position_buckets", 32}, {"p2c", false}},
      {{"heads", 4}, {"head_dim", 16}, {"position_buckets", 32}, {"c2p", false}},
      {{"heads", 2},
       {"head_dim", 8},
       {"position_buckets", 16},
       {"max_relative_positions", 40},
       {"c2p", false},
       {"p2c", false},
       {"p2p", true}},
      {{"heads", 1}, {"head_dim", 8}, {"c2p", false}, {"p2c", false}, {"scale_factor", 3}},
      // Buckets that grow by more than one row per position.
      {{"heads", 2}, {"head_dim", 16}, {"position_buckets", 64}, {"max_relative_positions", 40}},
      {{"heads", 2},
       {"head_dim", 16},
       {"position_buckets", 64},
       {"max_relative_positions", 40},
       {"far", "clamp"},
       {"p2p", true}},
      // float32 and float64 logarithms part here.
      {{"heads", 2}, {"head_dim", 13}, {"position_buckets", 32}, {"max_relative_positions", 129}},
      // Odd and tiny bucket counts.
      {{"heads", 2}, {"head_dim", 8}, {"position_buckets", 7}, {"max_relative_positions", 30}},
      {{"heads", 2}, {"head_dim", 8}, {"position_buckets", 2}, {"max_relative_positions", 3}},
      {{"heads", 1}, {"head_dim", 40}, {"position_buckets", 24}, {"max_relative_positions", 60}},
  };
}

}  // namespace locant::inline v0
