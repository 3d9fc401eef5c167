// Where the tokens of an input stand, for encodings that are added to it.
#pragma once

#include <cstdint>

#include "locant/core/view.h"

namespace locant::inline v0 {

// x (B, L, D) gets the position start + l in row l, unless positions or pads say otherwise.
struct EmbedOptions {
  int64_t start = 0;         // tokens before the first row: the length of a cache
  ConstView positions = {};  // (B | 1, L) int64: rows of PE, as they are, instead
  ConstView pads = {};       // (B, L) bool, true at padding: for encodings with a padding_idx
};

}  // namespace locant::inline v0
