#include "locant/draw/heat_map.h"

#include <algorithm>
#include <cmath>

#include "locant/draw/png.h"
#include "locant/draw/shades.h"
#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

constexpr double kTop = 30, kBottom = 46, kLeft = 52, kScale = 74;

// Round numbers for rows or columns first … first + count - 1, at the middle of their cells.
std::vector<std::pair<double, std::string>> cell_ticks(int64_t first, int64_t count, int ticks) {
  const Axis numbers{.low = static_cast<double>(first),
                     .high = static_cast<double>(std::max(first + count - 1, first + 1))};
  std::vector<std::pair<double, std::string>> out;
  for (auto& [value, words] : numbers.ticks(ticks))
    if (value == std::floor(value) && value < static_cast<double>(first + count))
      out.emplace_back((value - static_cast<double>(first) + 0.5) / static_cast<double>(count),
                       std::move(words));
  return out;
}

}  // namespace

Panel draw(const HeatMap& map) {
  const Shades shades = shades_of(map.values, map.is_signed, map.largest);
  Panel panel{.width = map.width, .height = map.height, .canvas = {}};
  Canvas& canvas = panel.canvas;
  const double width = map.width - kLeft - kScale, height = map.height - kTop - kBottom;
  const double bottom = kTop + height;
  std::vector<uint8_t> pixels;
  pixels.reserve(map.values.size());
  for (const double value : map.values) pixels.push_back(shades.index(value));

  canvas.text(0, 14, map.title, "h");
  canvas.image(kLeft, kTop, width, height,
               png_uri(map.columns, map.rows, pixels, shades.palette()));
  canvas.rectangle(kLeft, kTop, width, height, "axis");
  for (const auto& [part, words] :
       cell_ticks(map.first_column, map.columns, static_cast<int>(width / 45))) {
    canvas.line(kLeft + part * width, bottom, kLeft + part * width, bottom + 4, "axis");
    canvas.text(kLeft + part * width, bottom + 17, words, "m");
  }
  for (const auto& [part, words] : cell_ticks(map.first_row, map.rows, 6)) {
    canvas.line(kLeft - 4, kTop + part * height, kLeft, kTop + part * height, "axis");
    canvas.text(kLeft - 7, kTop + part * height + 4, words, "e");
  }
  canvas.text(kLeft + width / 2, bottom + 37, map.x_label, "m");
  canvas.upward_text(13, kTop + height / 2, map.y_label);
  draw_scale(shades, kLeft + width + 12, kTop, height, canvas);
  return panel;
}

Panel draw(const NumberMatrix& matrix) {
  const Shades shades = shades_of(matrix.values, matrix.is_signed, {});
  Panel panel{.width = matrix.width, .height = matrix.height, .canvas = {}};
  Canvas& canvas = panel.canvas;
  const double left = matrix.row_names.empty() ? kLeft : kLeft + 24;
  const double wide = (matrix.width - left - 10) / static_cast<double>(matrix.columns);
  const double high = (matrix.height - kTop - kBottom) / static_cast<double>(matrix.rows);
  const double bottom = matrix.height - kBottom;
  canvas.text(0, 14, matrix.title, "h");
  const auto name = [](const std::vector<std::string>& names, int64_t n) {
    return names.empty() ? std::to_string(n) : names[n];
  };
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const double y = kTop + high * static_cast<double>(i);
    canvas.text(left - 7, y + high / 2 + 4, name(matrix.row_names, i), "e");
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const double value = matrix.values[i * matrix.columns + j];
      if (std::isnan(value)) continue;
      const double x = left + wide * static_cast<double>(j);
      canvas.filled_rectangle(x, y, wide - 1, high - 1, shades.colour(value));
      canvas.text(x + wide / 2, y + high / 2 + 4, label_text(value, matrix.decimals),
                  is_bright(shades.colour(value)) ? "m ink" : "m chalk");
    }
  }
  for (int64_t j = 0; j < matrix.columns; ++j)
    canvas.text(left + wide * (static_cast<double>(j) + 0.5), bottom + 16,
                name(matrix.column_names, j), "m");
  canvas.text(left + wide * static_cast<double>(matrix.columns) / 2, bottom + 37, matrix.x_label,
              "m");
  canvas.upward_text(13, kTop + (bottom - kTop) / 2, matrix.y_label);
  return panel;
}

}  // namespace locant::inline v0
