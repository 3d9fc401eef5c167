// Configurations for the conformance checks, small enough that lengths near 100 reach every regime.
#include "locant/encodings/t5/t5.h"

namespace locant::inline v0 {

std::vector<FieldValues> T5::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 4}, {"head_dim", 16}, {"bidirectional", false}},
      {{"heads", 2}, {"head_dim", 8}, {"scale", 0.35}},
      {{"heads", 2}, {"head_dim", 24}, {"num_buckets", 8}, {"max_distance", 20}},
      {{"heads", 2},
       {"head_dim", 13},
       {"num_buckets", 36},
       {"max_distance", 32},
       {"bidirectional", false}},
      {{"heads", 1}, {"head_dim", 8}, {"num_buckets", 4}, {"max_distance", 2}},
      {{"heads", 2},
       {"head_dim", 8},
       {"num_buckets", 2},
       {"max_distance", 3},
       {"bidirectional", false}},
      {{"heads", 2}, {"head_dim", 40}, {"num_buckets", 33}, {"max_distance", 64}},
  };
}

}  // namespace locant::inline v0
