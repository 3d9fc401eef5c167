#include "locant/draw/token_map.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "locant/draw/png.h"
#include "locant/draw/shades.h"
#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

constexpr double kTop = 26, kLetter = 6.9, kWideLetter = 12, kLargestCell = 34, kLine = 12;
constexpr int kLongestLabel = 12;

// Width in pixels, as far as a letter's width can be told without its font.
double width_of(const std::string& label) {
  double width = 0;
  for (const char c : label) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;      // not the first byte of a character
    width += byte >= 0xe0 ? kWideLetter : kLetter;  // of three bytes and more: Chinese, signs
  }
  return width;
}

// Spaces can be seen, SentencePiece's too, whose sign U+2581 would look like a bar of the map; and
// so can a line's end that is a token of bytes.
std::string label_of(const std::string& token) {
  if (token == "<0x0A>") return "↵";
  std::string out = printable(token, kLongestLabel);
  for (const std::string_view space : {" ", "▁"})
    for (size_t at = out.find(space); at != std::string::npos; at = out.find(space, at))
      out.replace(at, space.size(), "␣");
  return out;
}

std::vector<std::string> labels_of(const std::vector<std::string>& tokens, double& widest) {
  std::vector<std::string> out;
  for (const std::string& token : tokens) {
    out.push_back(label_of(token));
    widest = std::max(widest, width_of(out.back()));
  }
  return out;
}

}  // namespace

Panel draw(const TokenMap& map) {
  const Shades shades{.range = {.low = 0, .high = map.largest}, .is_signed = false};
  double left = 0, below = 0;
  const std::vector<std::string> rows = labels_of(map.rows, left);
  const std::vector<std::string> columns = labels_of(map.columns, below);
  left += 12;
  const auto row_count = static_cast<double>(rows.size());
  const auto column_count = static_cast<double>(columns.size());
  const double cell = std::min((map.width - left - 4) / column_count, kLargestCell);
  const double width = cell * column_count, height = cell * row_count, bottom = kTop + height;
  Panel panel{.width = map.width, .height = bottom + below + 12, .canvas = {}};
  Canvas& canvas = panel.canvas;
  std::vector<uint8_t> pixels;
  pixels.reserve(map.values.size());
  for (const double value : map.values) pixels.push_back(shades.index(value));

  canvas.text(left, 14, map.title, "h");
  draw_lying_scale(shades, map.width, 3, canvas);
  canvas.image(left, kTop, width, height,
               png_uri(std::ssize(columns), std::ssize(rows), pixels, shades.palette()));
  canvas.rectangle(left, kTop, width, height, "axis");
  // As many labels as have room; the first is always there.
  const auto step = static_cast<size_t>(std::max(std::ceil(kLine / cell), 1.0));
  for (size_t i = 0; i < rows.size(); i += step)
    canvas.text(left - 6, kTop + cell * (static_cast<double>(i) + 0.5) + 4, rows[i], "e");
  for (size_t j = 0; j < columns.size(); j += step)
    canvas.upward_text(left + cell * (static_cast<double>(j) + 0.5) + 4, bottom + 6, columns[j],
                       "e");
  return panel;
}

}  // namespace locant::inline v0
