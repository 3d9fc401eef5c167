// A matrix as colours, with a scale beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "locant/draw/axis.h"
#include "locant/draw/figure.h"

namespace locant::inline v0 {

struct HeatMap {
  std::string title, x_label, y_label;
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};          // (rows, columns), row 0 on top; NaN: no colour
  int64_t first_column = 0, first_row = 0;  // the number of column 0 and of row 0
  // Signed values have white at 0 and as much blue as red; amounts go from dark to bright.
  bool is_signed = true;
  std::optional<double> largest = {};  // where colours end, instead of the largest |value|
  double width = kHalf, height = 300;
};

Panel draw(const HeatMap& map);

// A small matrix with the numbers written in the cells.
struct NumberMatrix {
  std::string title, x_label, y_label;
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};                             // (rows, columns), NaN: empty
  std::vector<std::string> row_names = {}, column_names = {};  // empty: 0, 1, 2, ...
  int decimals = 0;
  bool is_signed = false;
  double width = kHalf, height = 300;
};

Panel draw(const NumberMatrix& matrix);

}  // namespace locant::inline v0
