// Configurations for the conformance checks, small enough that lengths near 100 reach every regime.
#include "locant/encodings/alibi/alibi.h"

namespace locant::inline v0 {

std::vector<FieldValues> Alibi::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 1}, {"head_dim", 8}},
      // Not a power of two.
      {{"heads", 6}, {"head_dim", 13}},
      {{"heads", 12}, {"head_dim", 24}},
      // Nothing, steeper than the paper's, and a reward for distance.
      {{"heads", 4}, {"head_dim", 40}, {"slopes", std::vector<double>{0, 1.5, 0.125, -0.03}}},
  };
}

}  // namespace locant::inline v0
