// Configurations for the conformance checks: every layout with even and odd widths.
#include "locant/encodings/sinusoidal/sinusoidal.h"

namespace locant::inline v0 {

std::vector<FieldValues> Sinusoidal::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 2}, {"head_dim", 8}, {"layout", "split"}},
      {{"heads", 2}, {"head_dim", 24}, {"layout", "tensor2tensor"}, {"padding_idx", 1}},
      {{"heads", 1}, {"head_dim", 1}, {"base", 100.0}},
      {{"heads", 2}, {"head_dim", 8}, {"dim", 37}, {"padding_idx", 0}},
      {{"heads", 2}, {"head_dim", 8}, {"dim", 9}, {"layout", "split"}},
      {{"heads", 2}, {"head_dim", 8}, {"dim", 5}, {"layout", "tensor2tensor"}, {"base", 500000.0}},
      {{"heads", 1}, {"head_dim", 40}, {"dim", 515}},
  };
}

}  // namespace locant::inline v0
