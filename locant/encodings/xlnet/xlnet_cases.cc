// Configurations for the conformance checks: clamped near, beyond the lengths and not at all, both
// directions, sinusoids narrower and wider than the heads. Calls come with and without segments.
#include "locant/encodings/xlnet/xlnet.h"

namespace locant::inline v0 {

std::vector<FieldValues> XLNet::cases() {
  return {
      {{"heads", 4}, {"head_dim", 16}},
      {{"heads", 2}, {"head_dim", 24}, {"clamp_len", 30}},
      {{"heads", 2}, {"head_dim", 8}, {"clamp_len", 1}},
      {{"heads", 4}, {"head_dim", 8}, {"clamp_len", 400}, {"attn_type", "uni"}},
      {{"heads", 2}, {"head_dim", 13}, {"d_model", 10}, {"attn_type", "uni"}},
      {{"heads", 1}, {"head_dim", 40}, {"d_model", 70}, {"clamp_len", 17}},
  };
}

}  // namespace locant::inline v0
