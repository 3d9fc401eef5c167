// Configurations for the conformance checks. Random parameters fall on both sides of the smallest.
#include "locant/encodings/kerple/kerple.h"

namespace locant::inline v0 {

std::vector<FieldValues> Kerple::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 1}, {"head_dim", 8}},
      {{"heads", 6}, {"head_dim", 13}},
  };
}

}  // namespace locant::inline v0
