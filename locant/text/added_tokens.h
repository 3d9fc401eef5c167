// Added and special tokens: what a folder's files say of them, and where they stand in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "locant/io/config.h"
#include "locant/text/tokenizer.h"

namespace locant::inline v0 {

// tokenizer_config.json of a folder, or an empty one.
Config tokenizer_config(const std::string& dir);

// What a family calls its special tokens unless a file says otherwise, in the order in which
// Hugging Face numbers those that the vocabulary lacks: {{"unk_token", "[UNK]"}, ...}. Of an empty
// name there is a token only if a file has one.
using TokenNames = std::vector<std::pair<std::string, std::string>>;

// Reads tokenizer_config.json, special_tokens_map.json and added_tokens.json; `listed` are the
// added tokens of a tokenizer.json. `find` gives the id of a token in the vocabulary or -1; tokens
// that nobody numbers follow after the vocabulary's `size` ids. `unchanged` says whether the
// tokenizer leaves a text as it is: tokens that must be looked for in normalised text are refused
// unless it does.
SpecialTokens read_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                                  int64_t size, const TokenNames& names,
                                  const std::function<int64_t(const std::string&)>& find,
                                  const std::function<bool(const std::string&)>& unchanged);

// A stretch of text, or a token in it.
struct Segment {
  ByteRange bytes;
  const AddedToken* token = nullptr;  // null: text
};

// Cuts a text at its added tokens: leftmost first, the longest of those that begin there.
std::vector<Segment> split_at_added_tokens(std::string_view text,
                                           const std::vector<AddedToken>& tokens);

}  // namespace locant::inline v0
