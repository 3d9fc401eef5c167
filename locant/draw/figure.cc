#include "locant/draw/figure.h"

#include <algorithm>

#include "locant/draw/text.h"

namespace locant::inline v0 {
namespace {

constexpr double kWidth = 900, kMargin = 16, kGap = 20, kLine = 19, kTitle = 32;

std::string style_text() {
  std::string lines;
  for (int n = 0; n + 1 < kLineColours; ++n) {
    const std::string name = ".c" + std::to_string(n), colour = kLinePalette[n];
    lines +=
        name + "{stroke:" + colour + ";fill:none}.f" + name.substr(1) + "{fill:" + colour + "}\n";
  }
  return "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1b1b1b}\n"
         ".T{font-size:19px;font-weight:700}.h{font-size:13.5px;font-weight:600}\n"
         ".q{fill:#5a5a5a}.m{text-anchor:middle}.e{text-anchor:end}\n"
         ".paper{fill:#fff}.grid{stroke:#e3e3e3}.axis{stroke:#8a8a8a;fill:none}\n"
         ".w{stroke-width:2;stroke-linejoin:round}.dash{stroke-dasharray:6 3}.back{stroke:#b5b5b5;"
         "fill:none}\n.ink{fill:#1b1b1b}.chalk{fill:#fff}.c6{stroke:#1b1b1b;fill:none}.fc6{fill:#"
         "1b1b1b}\nimage{image-rendering:pixelated}\n" +
         lines +
         "@media(prefers-color-scheme:dark){text,.fc6{fill:#e8e8e8}.q{fill:#a9a9a9}.paper{fill:#"
         "14171b}\n.grid{stroke:#2f343a}.axis{stroke:#8f959c}.c6{stroke:#e8e8e8}.back{stroke:#"
         "7a818a}\n.ink{fill:#1b1b1b}.chalk{fill:#fff}.c0{stroke:#1686d0}.fc0{fill:#1686d0}}\n";
}

// Where panels stand, row by row; `bottom` ends below the last.
struct Place {
  double x, y;
};
std::vector<Place> arrange(const std::vector<Panel>& panels, double top, double& bottom) {
  std::vector<Place> places;
  double x = 0, y = top, tallest = 0;
  for (const Panel& panel : panels) {
    if (x > 0 && x + panel.width > kWidth) {
      y += tallest + kGap;
      x = tallest = 0;
    }
    places.push_back({x, y});
    x += panel.width + kGap;
    tallest = std::max(tallest, panel.height);
  }
  bottom = y + tallest;
  return places;
}

std::string opening_tag(double width, double height, std::string_view label) {
  const std::string w = number_text(width, 0), h = number_text(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
         "\" viewBox=\"0 0 " + w + ' ' + h + "\" role=\"img\" aria-label=\"" + escaped(label) +
         "\">\n";
}

}  // namespace

std::string svg_text(const std::vector<Figure>& figures) {
  Canvas all;
  double y = 0;
  std::string label;
  for (const Figure& figure : figures) {
    label += (label.empty() ? "" : ", ") + figure.title;
    all.text(0, y + 18, figure.title, "T");
    y += kTitle;
    for (const std::string& line : figure.lines) {
      all.text(0, y + 10, line, "q");
      y += kLine;
    }
    double bottom = 0;
    const std::vector<Place> places = arrange(figure.panels, y + 8, bottom);
    for (size_t n = 0; n < places.size(); ++n)
      all.place(places[n].x, places[n].y, figure.panels[n].canvas);
    y = bottom + 2 * kGap;
  }
  const double width = kWidth + 2 * kMargin, height = y - 2 * kGap + 2 * kMargin;
  Canvas page;
  page.rectangle(0, 0, width, height, "paper");
  page.place(kMargin, kMargin, all);
  return opening_tag(width, height, label) + "<style>\n" + style_text() + "</style>\n" +
         page.elements() + "</svg>\n";
}

std::string html_text(const std::string& title, const std::vector<Figure>& figures) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light "
      "dark\">\n<title>" +
      escaped(title) + "</title>\n<style>\n" + style_text() +
      "body{font:15px/1.5 system-ui,sans-serif;margin:0 "
      "auto;max-width:900px;padding:16px;background:"
      "#fff;color:#1b1b1b}\nh1{font-size:22px;margin:24px 0 "
      "4px}p{margin:0}.panels{display:flex;flex-"
      "wrap:wrap;gap:20px;margin:16px 0 40px}\n.panels svg{max-width:100%;height:auto}\n"
      "@media(prefers-color-scheme:dark){body{background:#14171b;color:#e8e8e8}}\n</style>\n";
  for (const Figure& figure : figures) {
    out += "<section>\n<h1>" + escaped(figure.title) + "</h1>\n";
    for (const std::string& line : figure.lines) out += "<p>" + escaped(line) + "</p>\n";
    out += "<div class=\"panels\">\n";
    for (const Panel& panel : figure.panels)
      out += opening_tag(panel.width, panel.height, figure.title) + panel.canvas.elements() +
             "</svg>\n";
    out += "</div>\n</section>\n";
  }
  return out + "</html>\n";
}

}  // namespace locant::inline v0
