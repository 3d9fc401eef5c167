// Configurations for the conformance checks, small enough that lengths near 100 reach every regime.
#include "locant/encodings/shaw/shaw.h"

namespace locant::inline v0 {

std::vector<FieldValues> Shaw::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 4}, {"head_dim", 16}, {"values", false}},
      {{"heads", 2}, {"head_dim", 8}, {"max_distance", 1}},
      {{"heads", 4}, {"head_dim", 24}, {"max_distance", 7}, {"per_head", true}},
      {{"heads", 2}, {"head_dim", 8}, {"max_distance", 300}},
      {{"heads", 2}, {"head_dim", 16}, {"max_distance", 5}, {"reversed", true}},
      {{"heads", 2},
       {"head_dim", 16},
       {"max_distance", 255},
       {"values", false},
       {"clip", false},
       {"reversed", true}},
      {{"heads", 4},
       {"head_dim", 16},
       {"max_distance", 255},
       {"values", false},
       {"clip", false},
       {"reversed", true},
       {"key_query", true}},
      {{"heads", 2},
       {"head_dim", 13},
       {"max_distance", 9},
       {"per_head", true},
       {"key_query", true}},
      {{"heads", 1}, {"head_dim", 40}, {"max_distance", 30}},
  };
}

}  // namespace locant::inline v0
