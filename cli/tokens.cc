// locant tokens: the ids and pieces of texts.
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/validators.h"
#include "locant/core/error.h"
#include "locant/text/tokenizer.h"

namespace locant::cli {
namespace {

struct TokensFlags {
  std::string dir;
  std::string text, pair, file, json_lines;
  bool has_text = false, has_pair = false;
  int64_t max_length = 0;
  bool bare = false;
  bool json = false;
};

using nlohmann::ordered_json;

ordered_json json_of(const Tokenizer& tokenizer, const Encoded& encoded) {
  ordered_json pieces = ordered_json::array(), bytes = ordered_json::array();
  for (const int64_t id : encoded.ids) pieces.push_back(tokenizer.piece(id));
  for (const ByteRange& range : encoded.bytes) bytes.push_back({range.begin, range.end});
  return {{"ids", encoded.ids}, {"token_type_ids", encoded.token_type_ids}, {"pieces", pieces},
          {"bytes", bytes},     {"decoded", tokenizer.decode(encoded.ids)}, {"cut", encoded.cut}};
}

void print(const Tokenizer& tokenizer, const Encoded& encoded) {
  for (size_t n = 0; n < encoded.ids.size(); ++n)
    fmt::print("{:>8}  {}\n", encoded.ids[n], tokenizer.piece(encoded.ids[n]));
  if (encoded.cut > 0) fmt::print("{} tokens were cut off\n", encoded.cut);
}

// Encodes and prints one text, or a pair.
class Printer {
 public:
  explicit Printer(const TokensFlags& flags)
      : flags_(flags), tokenizer_(load_tokenizer(flags.dir)) {}

  void operator()(const std::string& text, const std::optional<std::string>& pair) const {
    const EncodeOptions options = {.max_length = flags_.max_length, .special_tokens = !flags_.bare};
    const Encoded encoded =
        pair ? tokenizer_->encode(text, *pair, options) : tokenizer_->encode(text, options);
    if (flags_.json) {
      const auto replace = nlohmann::json::error_handler_t::replace;
      fmt::print("{}\n", json_of(*tokenizer_, encoded).dump(-1, ' ', false, replace));
    } else {
      print(*tokenizer_, encoded);
    }
  }

 private:
  const TokensFlags& flags_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

// A line of --json-lines: "text", ["text", "pair"] or {"text": ..., "pair": ...}.
void print_json_line(const Printer& print_text, const std::string& line, int64_t number) {
  std::string text;
  std::optional<std::string> pair;
  try {
    const nlohmann::json value = nlohmann::json::parse(line);
    if (value.is_string()) {
      text = value;
    } else {
      text = value.is_array() ? value.at(0) : value.at("text");
      const bool has_pair = value.is_array() ? value.size() > 1 : value.contains("pair");
      if (has_pair) pair = value.is_array() ? value.at(1) : value.at("pair");
    }
  } catch (const nlohmann::json::exception& error) {
    fail("tokens", "line ", number,
         " must be \"text\" or {\"text\": ..., \"pair\": ...} in JSON: ", error.what());
  }
  print_text(text, pair);
}

int tokens(const TokensFlags& flags) {
  require(flags.has_text + !flags.file.empty() + !flags.json_lines.empty() == 1, "tokens",
          "give one of --text, --file and --json-lines");
  require(!flags.has_pair || flags.has_text, "tokens", "--pair goes with --text");
  const Printer print_text(flags);
  if (flags.has_text) {
    print_text(flags.text, flags.has_pair ? std::optional(flags.pair) : std::nullopt);
    return 0;
  }
  const std::string& path = flags.file.empty() ? flags.json_lines : flags.file;
  std::ifstream opened;
  if (path != "-") {
    opened.open(path);
    require(opened.good(), "tokens", path, ": cannot be read");
  }
  std::istream& lines = path == "-" ? std::cin : opened;
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    if (flags.file.empty()) {
      print_json_line(print_text, line, number);
    } else {
      print_text(line, std::nullopt);
    }
  }
  return 0;
}

}  // namespace

Command add_tokens(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tokens",
      "Token ids of texts, by the tokenizer of a model's folder (BERT, DeBERTa v2 and v3)");
  auto flags = std::make_shared<TokensFlags>();
  command->add_option("dir", flags->dir, "Folder with vocab.txt or spm.model")->required();
  auto* text = command->add_option("--text", flags->text, "A text");
  auto* pair = command->add_option("--pair", flags->pair, "A second text, behind the first");
  command->add_option("--file", flags->file,
                      "A file with a text on each line; - is standard input");
  command->add_option("--json-lines", flags->json_lines,
                      "A file with \"text\" or {\"text\": ..., \"pair\": ...} on each line; "
                      "- is standard input");
  command->add_option("--truncate", flags->max_length, "Cut to so many tokens; says how many went")
      ->check(at_least(1));
  command->add_flag("--bare", flags->bare, "Without [CLS] and [SEP]");
  command->add_flag("--json", flags->json, "For programs: one object a line, with byte ranges");
  return [flags, text, pair] {
    flags->has_text = text->count() > 0;
    flags->has_pair = pair->count() > 0;
    return tokens(*flags);
  };
}

}  // namespace locant::cli
