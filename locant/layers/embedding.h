// Rows of a table by number: words, token types, positions.
#pragma once

#include <cstdint>
#include <span>

#include "locant/core/api.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// out[i] (+)= table[ids[i]]
//   table (rows, D), out (count of ids, D), float32 with contiguous rows
// The ids must be rows of the table: callers check them where they can name the argument.
LOCANT_API void gather_rows(const ConstView& table, std::span<const int64_t> ids, bool add,
                            const View& out);

}  // namespace locant::inline v0
