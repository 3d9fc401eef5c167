// Whether two strided views can touch the same memory.
#pragma once

#include "locant/core/api.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// False only if no byte belongs to both views. Interleaved slices of one buffer, such as q, k, v
// and out side by side in each token's row, are told apart; other cases are decided by their
// extent.
LOCANT_API bool may_overlap(const ConstView& a, const ConstView& b);

}  // namespace locant::inline v0
