// Whether a RopeConfig makes sense.
#pragma once

#include "locant/encodings/rope/rope.h"

namespace locant::inline v0 {

// Returns the config, or fails by the name of the field that is wrong.
const RopeConfig& checked(const RopeConfig& config);

}  // namespace locant::inline v0
