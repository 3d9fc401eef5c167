// The attention of a model's layer on a text, as a figure.
#pragma once

#include <cstdint>
#include <string>

#include "cli/texts.h"
#include "locant/draw/figure.h"

namespace locant::cli {

struct AttentionRequest {
  std::string dir;
  Passage passage = {};  // or
  std::string ids = {};  // "101,7592,102"
  int64_t layer = 0;
  int64_t head = -1;  // -1: all
};

Figure draw_attention(const AttentionRequest& request);

}  // namespace locant::cli
