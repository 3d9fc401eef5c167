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

// The continuation of a prompt: as text, or as numbers if there is no tokenizer.
class Printer {
 public:
  Printer(const Model& model, const TextStream::Decode& decode, bool several)
      : decode_(decode), several_(several), encoder_(model.info().decoder_layers > 0) {}

  // What stands before the new tokens: a number if there are several prompts, and the prompt itself
  // if it and they are one text.
  void begin(size_t number, const std::vector<int64_t>& prompt) {
    count_ = 0;
    last_ = 0;
    if (!decode_) {
      fmt::print("sequence {} ({} tokens): ", number, prompt.size());
    } else {
      if (several_) fmt::print("text {} ({} tokens):\n", number, prompt.size());
      text_.emplace(decode_, before(prompt));
      write(encoder_ ? "" : decode_(prompt));
    }
    std::fflush(stdout);
  }

  void add(int64_t token) {
    if (text_) {
      write(text_->add(token));
    } else {
      fmt::print("{}{}", count_++ == 0 ? "" : " ", token);
    }
    std::fflush(stdout);
  }

  void end() {
    if (text_) write(text_->end());
    if (!text_ || last_ != '\n') fmt::print("\n");
    std::fflush(stdout);
  }

  // {"ids": ..., "text": ...} of the new tokens.
  void print_json(const std::vector<int64_t>& prompt, const std::vector<int64_t>& tokens) const {
    ordered_json line;
    line["ids"] = tokens;
    if (decode_) {
      std::vector<int64_t> whole = before(prompt);
      const size_t given = whole.empty() ? 0 : decode_(whole).size();
      whole.insert(whole.end(), tokens.begin(), tokens.end());
      line["text"] = decode_(whole).substr(given);
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }

 private:
  std::vector<int64_t> before(const std::vector<int64_t>& prompt) const {
    return encoder_ ? std::vector<int64_t>() : prompt;
  }

  void write(const std::string& part) {
    fmt::print("{}", part);
    if (!part.empty()) last_ = part.back();
  }

  const TextStream::Decode& decode_;
  const bool several_, encoder_;
  std::optional<TextStream> text_;
  char last_ = 0;      // that was written of this text
  int64_t count_ = 0;  // of its new tokens
};

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
                      "Continue each text by at most so many tokens, printed as they come; T5 "
                      "answers it")
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
                      "Token id that ends a text; may be repeated; else as the checkpoint says")
          ->needs(generate);
  command.add_flag("--no-stop", flags.never_stop, "No token ends a text")
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
                  const GenerateFlags& flags, const TextStream::Decode& decode) {
  GenerateOptions options = flags.options;
  options.max_new_tokens = flags.count;
  if (flags.never_stop) options.stop = {kNeverStop};
  Speeds speeds;
  Printer printer(model, decode, prompts.size() > 1);
  const auto batch = static_cast<size_t>(flags.batch);
  for (size_t begin = 0; begin < prompts.size(); begin += batch) {
    const size_t end = std::min(prompts.size(), begin + batch);
    ModelInput input;
    input.ids.assign(prompts.begin() + static_cast<int64_t>(begin),
                     prompts.begin() + static_cast<int64_t>(end));
    options.first_sequence = static_cast<int64_t>(begin);
    const auto start = Clock::now();
    std::optional<Clock::time_point> prompts_done;
    options.on_token = [&](int64_t sequence, int64_t token) {
      if (!prompts_done) {
        prompts_done = Clock::now();
        if (!flags.json) printer.begin(begin, input.ids[0]);
      }
      if (sequence == 0 && !flags.json) printer.add(token);
      return true;
    };
    const std::vector<std::vector<int64_t>> tokens = model.generate(input, options);
    const auto done = Clock::now();
    speeds.prompt_seconds += seconds_between(start, prompts_done.value_or(done));
    speeds.new_seconds += seconds_between(prompts_done.value_or(done), done);
    if (!flags.json) printer.end();
    for (size_t n = 0; n < tokens.size(); ++n) {
      speeds.prompt_tokens += static_cast<int64_t>(input.ids[n].size());
      speeds.new_tokens += static_cast<int64_t>(tokens[n].size()) - 1;
      if (flags.json) {
        printer.print_json(input.ids[n], tokens[n]);
      } else if (n > 0) {
        printer.begin(begin + n, input.ids[n]);
        for (const int64_t token : tokens[n]) printer.add(token);
        printer.end();
      }
    }
  }
  speeds.print();
}

}  // namespace locant::cli
