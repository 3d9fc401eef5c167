// Configurations for the conformance checks, small enough that lengths near 100 reach every regime.
#include "locant/encodings/none/none.h"

namespace locant::inline v0 {

std::vector<FieldValues> None::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}}, {{"heads", 2}, {"head_dim", 8}},
      {{"heads", 1}, {"head_dim", 1}},  {{"heads", 2}, {"head_dim", 3}},
      {{"heads", 6}, {"head_dim", 40}}, {{"heads", 2}, {"head_dim", 64}},
      {{"heads", 1}, {"head_dim", 96}},
  };
}

}  // namespace locant::inline v0
