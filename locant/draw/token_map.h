// A matrix whose rows and columns are tokens: who looks at whom.
#pragma once

#include <string>
#include <vector>

#include "locant/draw/figure.h"

namespace locant::inline v0 {

struct TokenMap {
  std::string title;
  std::vector<std::string> rows = {}, columns = {};  // the tokens
  std::vector<double> values = {};         // (rows, columns) >= 0; NaN: no colour
  double largest = 1;                      // where colours end; 0 is where they begin
  double width = kHalf;                    // cells are squares, so the height follows
};

Panel draw(const TokenMap& map);

}  // namespace locant::inline v0
