// The part of a product that one thread computes.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

struct MatmulTile {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;
};

}  // namespace locant::inline v0
