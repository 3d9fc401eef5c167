#include "locant/draw/canvas.h"

#include <cmath>

#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

std::string pixel_text(double value) {
  return number_text(value, 1);
}

}  // namespace

void Canvas::element(std::string_view name, std::string_view classes,
                     std::initializer_list<std::pair<const char*, double>> numbers,
                     std::string_view more) {
  elements_ += "<";
  elements_ += name;
  if (!classes.empty()) (elements_ += " class=\"").append(classes) += '"';
  for (const auto& [key, value] : numbers)
    ((elements_ += ' ') += key) += "=\"" + pixel_text(value) + "\"";
  elements_ += more;
  elements_ += "/>\n";
}

void Canvas::text(double x, double y, std::string_view words, std::string_view classes) {
  elements_ += "<text";
  if (!classes.empty()) (elements_ += " class=\"").append(classes) += '"';
  elements_ +=
      " x=\"" + pixel_text(x) + "\" y=\"" + pixel_text(y) + "\">" + escaped(words) + "</text>\n";
}

void Canvas::upward_text(double x, double y, std::string_view words, std::string_view classes) {
  elements_ += "<text class=\"" + std::string(classes) + "\" transform=\"translate(" +
               pixel_text(x) + ' ' + pixel_text(y) + ") rotate(-90)\">" + escaped(words) +
               "</text>\n";
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  element("line", classes, {{"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
}

void Canvas::rectangle(double x, double y, double width, double height, std::string_view classes) {
  element("rect", classes, {{"x", x}, {"y", y}, {"width", width}, {"height", height}});
}

void Canvas::filled_rectangle(double x, double y, double width, double height,
                              const Colour& colour) {
  element("rect", "", {{"x", x}, {"y", y}, {"width", width}, {"height", height}},
          " fill=\"" + hex_text(colour) + "\"");
}

void Canvas::dot(double x, double y, double radius, std::string_view classes) {
  element("circle", classes, {{"cx", x}, {"cy", y}, {"r", radius}});
}

void Canvas::path(const std::vector<std::pair<double, double>>& points, std::string_view classes) {
  std::vector<std::pair<double, double>> kept;  // in tenths of a pixel, as they are written
  for (const auto& [x, y] : points) {
    const std::pair<double, double> next = {std::round(10 * x), std::round(10 * y)};
    while (kept.size() >= 2) {
      const auto& [x1, y1] = kept[kept.size() - 2];
      const auto& [x2, y2] = kept.back();
      if ((x2 - x1) * (next.second - y2) != (y2 - y1) * (next.first - x2)) break;
      kept.pop_back();
    }
    kept.push_back(next);
  }
  if (kept.empty()) return;
  std::string data;
  for (const auto& [x, y] : kept) {
    data += data.empty() ? 'M' : 'L';
    data += pixel_text(x / 10) + ' ' + pixel_text(y / 10);
  }
  element("path", classes, {}, " d=\"" + data + "\"");
}

void Canvas::image(double x, double y, double width, double height, std::string_view uri) {
  element("image", "", {{"x", x}, {"y", y}, {"width", width}, {"height", height}},
          std::string(" preserveAspectRatio=\"none\" href=\"").append(uri) + "\"");
}

void Canvas::place(double x, double y, const Canvas& other) {
  elements_ += "<g transform=\"translate(" + pixel_text(x) + ' ' + pixel_text(y) + ")\">\n" +
               other.elements_ + "</g>\n";
}

}  // namespace locant::inline v0
