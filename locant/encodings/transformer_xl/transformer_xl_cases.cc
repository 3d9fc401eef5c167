// Configurations for the conformance checks: clamped near, beyond the lengths and not at all;
// sinusoids narrower and wider than the heads.
#include "locant/encodings/transformer_xl/transformer_xl.h"

namespace locant::inline v0 {

std::vector<FieldValues> TransformerXL::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 2}, {"head_dim", 24}, {"clamp_len", 30}},
      {{"heads", 2}, {"head_dim", 8}, {"clamp_len", 1}},
      {{"heads", 4}, {"head_dim", 8}, {"clamp_len", 400}},
      {{"heads", 2}, {"head_dim", 13}, {"d_model", 10}},
      {{"heads", 1}, {"head_dim", 40}, {"d_model", 70}, {"clamp_len", 17}},
  };
}

}  // namespace locant::inline v0
