// Configurations for the conformance checks: tables that hold every case's positions, by either
// rule, and one that is too short for some.
#include "locant/encodings/learned/learned.h"

namespace locant::inline v0 {

std::vector<FieldValues> Learned::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}, {"max_len", 200}},
      {{"heads", 2}, {"head_dim", 8}, {"max_len", 200}, {"padding_idx", 1}},
      {{"heads", 2}, {"head_dim", 3}, {"dim", 7}, {"max_len", 150}, {"padding_idx", 0}},
      {{"heads", 1}, {"head_dim", 1}, {"max_len", 100}},
      {{"heads", 1}, {"head_dim", 40}, {"dim", 515}, {"max_len", 180}, {"padding_idx", 30}},
  };
}

}  // namespace locant::inline v0
