// Sums that pullbacks are made of.
#pragma once

#include "locant/core/api.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// sum += part, element by element; the same shape, f32 or f64 each, any strides.
LOCANT_API void add_to(const View& sum, const ConstView& part);

}  // namespace locant::inline v0
