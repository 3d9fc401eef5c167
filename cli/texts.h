// Texts that a command is given: from its arguments, files or the standard input.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace locant::cli {

// A text, and perhaps a second one behind it: a question and where its answer is looked for.
struct Passage {
  std::string text;
  std::optional<std::string> pair;
};

// Calls `take` with each line of a file and its number, from 1; "-" is the standard input. A
// carriage return at a line's end is no part of it, nor is a byte order mark at the first's
// beginning.
void for_each_line(const char* scope, const std::string& path,
                   const std::function<void(const std::string& line, int64_t number)>& take);

// A text on each line.
std::vector<Passage> read_text_lines(const char* scope, const std::string& path);

// "text", ["text", "pair"] or {"text": ..., "text_pair": ...} on each line; empty lines are passed
// over.
std::vector<Passage> read_json_lines(const char* scope, const std::string& path);

// --text and --pair: no pairs, or as many as texts.
std::vector<Passage> passages_of(const char* scope, const std::vector<std::string>& texts,
                                 const std::vector<std::string>& pairs);

}  // namespace locant::cli
