// locant show: what an encoding does, as a picture.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/show/attention.h"
#include "cli/show/pictures.h"
#include "cli/texts.h"
#include "cli/validators.h"
#include "locant/core/error.h"
#include "locant/draw/figure.h"
#include "locant/encodings/registry.h"

namespace locant::cli {
namespace {

struct ShowFlags {
  std::vector<std::string> names;
  std::string svg, html;
  std::vector<std::string> set;  // key=value
  std::vector<std::string> texts, pairs, ids;
  std::optional<int64_t> layer, head;
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

std::vector<Figure> figures_of_encodings(const ShowFlags& flags) {
  std::vector<const EncodingEntry*> entries;
  require(flags.pairs.empty() && !flags.layer && !flags.head, "show",
          "--pair, --layer and --head go with --text or --ids");
  for (const std::string& name : flags.names)
    if (std::filesystem::is_directory(name))
      fail("show", name, " is a folder: give --text or --ids to see how its model looks at them");
    else if (name != "all")
      entries.push_back(&find_encoding(name));
    else
      for (const EncodingEntry& entry : encodings()) entries.push_back(&entry);
  require_known_settings("show", entries, flags.set);
  std::vector<Figure> figures;
  for (const EncodingEntry* entry : entries) figures.push_back(figure_of(*entry, flags.set));
  return figures;
}

// The texts through a model's layer.
std::vector<Figure> figures_of_attention(const ShowFlags& flags) {
  require(flags.names.size() == 1, "show",
          "--text and --ids go through one model: give its folder, and nothing else, got ",
          flags.names.size(), " names");
  require(flags.set.empty(), "show", "--set is for encodings; a model has its own fields");
  AttentionRequest request{
      .dir = flags.names[0], .layer = flags.layer.value_or(0), .head = flags.head.value_or(-1)};
  std::vector<Figure> figures;
  for (const Passage& passage : passages_of("show", flags.texts, flags.pairs)) {
    request.passage = passage;
    figures.push_back(draw_attention(request));
  }
  for (const std::string& ids : flags.ids) {
    request.ids = ids;
    figures.push_back(draw_attention(request));
  }
  return figures;
}

int show(const ShowFlags& flags) {
  const bool prints = flags.svg.empty() && flags.html.empty();
  require(!prints || isatty(STDOUT_FILENO) == 0, "show",
          "give --html FILE or --svg FILE; SVG goes to the output only where that is no terminal");
  const bool of_model = !flags.texts.empty() || !flags.ids.empty();
  const std::vector<Figure> figures =
      of_model ? figures_of_attention(flags) : figures_of_encodings(flags);
  const std::string title = of_model ? "locant: attention" : "locant: position encodings";
  if (!flags.svg.empty()) write(flags.svg, svg_text(figures));
  if (!flags.html.empty()) write(flags.html, html_text(title, figures));
  if (prints) fmt::print("{}", svg_text(figures));
  return 0;
}

}  // namespace

Command add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show",
                                         "Draw what an encoding does, from its own numbers, or how "
                                         "a model's layer looks at a text: SVG to "
                                         "the output, or files");
  auto flags = std::make_shared<ShowFlags>();
  command
      ->add_option("names", flags->names,
                   "Encodings (see locant list), or all; or a model's folder")
      ->required();
  command->add_option("--svg", flags->svg, "Write an SVG file");
  command->add_option("--html", flags->html, "Write an HTML page, whole in itself");
  repeated(command->add_option("--set", flags->set,
                               "A field of the encoding, e.g. --set bidirectional=false"));
  repeated(command->add_option("--text", flags->texts, "A text for the model; may be repeated"));
  repeated(command->add_option("--pair", flags->pairs, "A second text behind the first"));
  repeated(
      command->add_option("--ids", flags->ids, "Token ids instead, 101,7592,102; may be repeated"));
  command->add_option("--layer", flags->layer, "Whose attention, from 0; else layer 0")
      ->check(at_least(0));
  command->add_option("--head", flags->head, "One of its heads, from 0; else all")
      ->check(at_least(0));
  command->footer("Pictures follow the reader's light or dark setting and need no network.");
  return [flags] { return show(*flags); };
}

}  // namespace locant::cli
