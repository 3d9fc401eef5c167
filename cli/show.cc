// locant show: what an encoding does, as a picture.
#include <fmt/core.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/show/pictures.h"
#include "locant/core/error.h"
#include "locant/draw/figure.h"
#include "locant/encodings/registry.h"

namespace locant::cli {
namespace {

struct ShowFlags {
  std::vector<std::string> names;
  std::string svg, html;
  std::vector<std::string> set;  // key=value
};

Figure figure_of(const EncodingEntry& entry, const std::vector<std::string>& settings) {
  Request request{.entry = entry, .fields = {}};
  apply_settings(entry, settings, request.fields);
  for (const auto& [name, draw] : pictures())
    if (name == entry.name) return draw(request);
  fail("show", "there is no picture of ", entry.name);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  require(file.good(), "show", "cannot write ", path);
  fmt::print("{}\n", path);
}

int show(const ShowFlags& flags) {
  std::vector<const EncodingEntry*> entries;
  for (const std::string& name : flags.names)
    if (name != "all")
      entries.push_back(&find_encoding(name));
    else
      for (const EncodingEntry& entry : encodings()) entries.push_back(&entry);
  require_known_settings("show", entries, flags.set);
  std::vector<Figure> figures;
  for (const EncodingEntry* entry : entries) figures.push_back(figure_of(*entry, flags.set));
  if (!flags.svg.empty()) write(flags.svg, svg_text(figures));
  if (!flags.html.empty()) write(flags.html, html_text("locant: position encodings", figures));
  if (flags.svg.empty() && flags.html.empty()) fmt::print("{}", svg_text(figures));
  return 0;
}

}  // namespace

Command add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "show", "Draw what an encoding does, from its own numbers: SVG to the output, or files");
  auto flags = std::make_shared<ShowFlags>();
  command->add_option("names", flags->names, "Encodings (see locant list), or all")->required();
  command->add_option("--svg", flags->svg, "Write an SVG file");
  command->add_option("--html", flags->html, "Write an HTML page, whole in itself");
  command
      ->add_option("--set", flags->set, "A field of the encoding, e.g. --set bidirectional=false")
      ->expected(1)
      ->take_all();
  command->footer("Pictures follow the reader's light or dark setting and need no network.");
  return [flags] { return show(*flags); };
}

}  // namespace locant::cli
