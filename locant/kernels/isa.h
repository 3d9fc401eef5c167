// Which instruction set the kernels use. The best one of this CPU unless LOCANT_ISA names another.
#pragma once

#include <string>
#include <vector>

#include "locant/core/api.h"

namespace locant::inline v0 {

// Names: "scalar", "ssse3", "sse4", "avx2", "avx3", "neon", ...: those compiled in and present
// here, best first.
LOCANT_API std::vector<std::string> available_isas();

// The one that kernels run now, as the kernel itself reports it.
LOCANT_API std::string isa();

// Forces one of available_isas(); "best" returns to the default. Not to be called during a call.
LOCANT_API void set_isa(const std::string& name);

}  // namespace locant::inline v0
