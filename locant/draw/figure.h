// A figure: panels beside and below each other under a title, as one SVG or as an HTML page. Both
// are whole in themselves and follow the reader's light or dark setting.
#pragma once

#include <string>
#include <vector>

#include "locant/draw/canvas.h"

namespace locant::inline v0 {

// Panels of 440 stand two in a row, those of 286 three.
inline constexpr double kHalf = 440, kThird = 286;

struct Panel {
  double width = kHalf, height = 300;
  Canvas canvas;
};

struct Figure {
  std::string title;
  std::vector<std::string> lines;  // what is drawn: the formula, the settings
  std::vector<Panel> panels;
};

// The figures below each other.
std::string svg_text(const std::vector<Figure>& figures);

// The same as a page whose panels wrap with the window's width.
std::string html_text(const std::string& title, const std::vector<Figure>& figures);

}  // namespace locant::inline v0
