#include "cli/run_generate.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/validators.h"

namespace locant::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// How long the text is without a character at its end whose last bytes are still to come: bytes
// that are missing, or U+FFFD in their place.
size_t whole_characters(const std::string& text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  size_t end = text.size();
  while (std::string_view(text).substr(0, end).ends_with(kReplacement)) end -= kReplacement.size();
  size_t begin = end;  // of the last character
  while (begin > 0 && end - begin < 4 && (text[begin - 1] & 0xC0) == 0x80) --begin;
  if (begin == 0) return end;
  const auto first = static_cast<unsigned char>(text[begin - 1]);
  const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return begin - 1 + bytes <= end ? end : begin - 1;
}

// Prints tokens as they come: numbers, or the part of the text that is certain by now.
class Stream {
 public:
  explicit Stream(const Decode& decode) : decode_(decode) {}

  void add(int64_t token) {
    ids_.push_back(token);
    if (decode_) {
      const std::string text = decode_(ids_);
      write(text, std::max(shown_, whole_characters(text)));
    } else {
      fmt::print("{}{}", ids_.size() == 1 ? "" : " ", token);
    }
    std::fflush(stdout);
  }

  void end() {
    if (decode_) {
      const std::string text = decode_(ids_);
      write(text, text.size());
    }
    fmt::print("\n");
  }

 private:
  void write(const std::string& text, size_t end) {
    if (end > shown_ && end <= text.size())
      fmt::print("{}", std::string_view(text).substr(shown_, end - shown_));
    shown_ = std::max(shown_, end);
  }

  const Decode& decode_;
  std::vector<int64_t> ids_;
  size_t shown_ = 0;
};

void print_json(const std::vector<int64_t>& ids, const Decode& decode) {
  ordered_json line;
  line["ids"] = ids;
  if (decode) line["text"] = decode(ids);
  fmt::print("{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

void print_heading(size_t number, const std::vector<int64_t>& prompt) {
  fmt::print("sequence {} ({} tokens): ", number, prompt.size());
  std::fflush(stdout);
}

// Tokens and time of the prompts, up to the first new token, and of those after it.
struct Speeds {
  int64_t prompt_tokens = 0, new_tokens = 0;
  double prompt_seconds = 0, new_seconds = 0;

  void print() const {
    const auto rate = [](int64_t tokens, double seconds) {
      return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
    };
    fmt::print(stderr, "prompts: {} tokens, {:.3f} s, {:.0f} tokens per second\n", prompt_tokens,
               prompt_seconds, rate(prompt_tokens, prompt_seconds));
    fmt::print(stderr, "after the first: {} new tokens, {:.3f} s, {:.1f} tokens per second\n",
               new_tokens, new_seconds, rate(new_tokens, new_seconds));
  }
};

}  // namespace

void add_generate_options(CLI::App& command, GenerateFlags& flags) {
  CLI::Option* generate =
      command
          .add_option("--generate", flags.count,
                      "Continue each sequence by at most so many tokens (models of language)")
          ->check(at_least(1));
  GenerateOptions& options = flags.options;
  command
      .add_option("--temperature", options.temperature,
                  "0: the likeliest token; else a draw from softmax(logits / temperature)")
      ->needs(generate)
      ->capture_default_str();
  command
      .add_option("--top-p", options.top_p,
                  "Draw from the likeliest tokens that hold this much probability")
      ->needs(generate)
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of the draws")
      ->needs(generate)
      ->capture_default_str();
  CLI::Option* stop =
      command
          .add_option("--stop", options.stop,
                      "Token id that ends a sequence; may be repeated; else as the checkpoint says")
          ->needs(generate);
  command.add_flag("--no-stop", flags.never_stop, "No token ends a sequence")
      ->needs(generate)
      ->excludes(stop);
  command
      .add_flag(
          "--exact,!--no-exact", options.exact,
          "Where a rotation changes with the length (dynamic NTK, LongRoPE): compute the text "
          "anew, else only turn cached keys anew (it does unless --no-exact)")
      ->needs(generate);
}

void run_generate(const Model& model, const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateFlags& flags, const Decode& decode) {
  GenerateOptions options = flags.options;
  options.max_new_tokens = flags.count;
  if (flags.never_stop) options.stop = {kNeverStop};
  Speeds speeds;
  const auto batch = static_cast<size_t>(flags.batch);
  for (size_t begin = 0; begin < prompts.size(); begin += batch) {
    const size_t end = std::min(prompts.size(), begin + batch);
    ModelInput input;
    input.ids.assign(prompts.begin() + static_cast<int64_t>(begin),
                     prompts.begin() + static_cast<int64_t>(end));
    options.first_sequence = static_cast<int64_t>(begin);
    Stream first(decode);
    const auto start = Clock::now();
    std::optional<Clock::time_point> prompts_done;
    options.on_token = [&](int64_t sequence, int64_t token) {
      if (!prompts_done) {
        prompts_done = Clock::now();
        if (!flags.json) print_heading(begin, input.ids[0]);
      }
      if (sequence == 0 && !flags.json) first.add(token);
      return true;
    };
    const std::vector<std::vector<int64_t>> tokens = model.generate(input, options);
    const auto done = Clock::now();
    speeds.prompt_seconds += seconds_between(start, prompts_done.value_or(done));
    speeds.new_seconds += seconds_between(prompts_done.value_or(done), done);
    if (!flags.json) first.end();
    for (size_t n = 0; n < tokens.size(); ++n) {
      speeds.prompt_tokens += static_cast<int64_t>(input.ids[n].size());
      speeds.new_tokens += static_cast<int64_t>(tokens[n].size()) - 1;
      if (flags.json) {
        print_json(tokens[n], decode);
      } else if (n > 0) {
        print_heading(begin + n, input.ids[n]);
        Stream whole(decode);
        for (const int64_t token : tokens[n]) whole.add(token);
        whole.end();
      }
    }
  }
  speeds.print();
}

}  // namespace locant::cli
