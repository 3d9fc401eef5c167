// Dispatch to the chosen instruction set. Highway's own choice is shared by everything in a process
// that uses Highway; locant keeps its own, so that forcing one disturbs nobody else.
#pragma once

#include <cstddef>

namespace locant::inline v0 {

// Index of the chosen instruction set in the tables that HWY_EXPORT makes.
size_t isa_index();

}  // namespace locant::inline v0

// LOCANT_DISPATCH(Function)(arguments...), after HWY_EXPORT(Function). This header does not include
// Highway: foreach_target.h has to come before it.
#define LOCANT_DISPATCH(function) LOCANT_DISPATCH_TO(function, ::locant::isa_index())

// The same on the instruction set of an index that was kept: what one packed, only it can read.
#define LOCANT_DISPATCH_TO(function, index) (*(HWY_DISPATCH_TABLE(function)[index]))
