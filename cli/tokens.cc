// locant tokens: the ids and pieces of texts.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/texts.h"
#include "cli/validators.h"
#include "locant/core/error.h"
#include "locant/text/tokenizer.h"

namespace locant::cli {
namespace {

struct TokensFlags {
  std::string dir, file, jsonl;
  std::vector<std::string> texts, pairs;
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

  void operator()(const Passage& passage) const {
    const EncodeOptions options = {.max_length = flags_.max_length, .special_tokens = !flags_.bare};
    const Encoded encoded = passage.pair ? tokenizer_->encode(passage.text, *passage.pair, options)
                                         : tokenizer_->encode(passage.text, options);
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

int tokens(const TokensFlags& flags) {
  require(!flags.texts.empty() + !flags.file.empty() + !flags.jsonl.empty() == 1, "tokens",
          "give one of --text, --file and --jsonl");
  require(flags.pairs.empty() || !flags.texts.empty(), "tokens", "--pair goes with --text");
  const Printer print_text(flags);
  const std::vector<Passage> passages =
      !flags.texts.empty()  ? passages_of("tokens", flags.texts, flags.pairs)
      : !flags.file.empty() ? read_text_lines("tokens", flags.file)
                            : read_json_lines("tokens", flags.jsonl);
  for (const Passage& passage : passages) print_text(passage);
  return 0;
}

}  // namespace

Command add_tokens(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokens",
                                         "Token ids of texts, by the tokenizer of a model's folder "
                                         "(BERT, DeBERTa v2 and v3, Llama, T5)");
  auto flags = std::make_shared<TokensFlags>();
  command
      ->add_option("dir", flags->dir,
                   "Folder with vocab.txt, spm.model, tokenizer.model or spiece.model")
      ->required();
  repeated(command->add_option("--text", flags->texts, "A text; may be repeated"));
  repeated(command->add_option("--pair", flags->pairs, "A second text, behind the first"));
  command->add_option("--file", flags->file,
                      "A file with a text on each line; - is standard input");
  command->add_option("--jsonl", flags->jsonl,
                      "A file with \"text\" or {\"text\": ..., \"text_pair\": ...} on each line; "
                      "- is standard input");
  command
      ->add_option("--max-length", flags->max_length, "Cut to so many tokens; says how many went")
      ->check(at_least(1));
  command->add_flag("--bare", flags->bare, "Without the special tokens around texts");
  command->add_flag("--json", flags->json, "For programs: one object a line, with byte ranges");
  return [flags] { return tokens(*flags); };
}

}  // namespace locant::cli
