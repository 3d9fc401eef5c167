// SVG elements, one after another. Colours that change between light and dark are classes of the
// style sheet (figure.cc): paper, grid, axis, quiet, c0 to c6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "locant/draw/colours.h"

namespace locant::inline v0 {

class Canvas {
 public:
  const std::string& elements() const { return elements_; }

  // `classes` may hold m or e (centred on x, ending there), h (heading), q (quiet).
  void text(double x, double y, std::string_view words, std::string_view classes = "");
  // The same turned to read upwards.
  void upward_text(double x, double y, std::string_view words, std::string_view classes = "m");
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  void rectangle(double x, double y, double width, double height, std::string_view classes);
  void filled_rectangle(double x, double y, double width, double height, const Colour& colour);
  void dot(double x, double y, double radius, std::string_view classes);
  // A line through the points; those that lie on the way are left out.
  void path(const std::vector<std::pair<double, double>>& points, std::string_view classes);
  // Pixels as in png_uri(), stretched over the rectangle with sharp edges.
  void image(double x, double y, double width, double height, std::string_view uri);
  // Another canvas, moved.
  void place(double x, double y, const Canvas& other);

 private:
  void element(std::string_view name, std::string_view classes,
               std::initializer_list<std::pair<const char*, double>> numbers,
               std::string_view more = "");

  std::string elements_;
};

}  // namespace locant::inline v0
