// Added and special tokens: what a folder's files say of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "locant/io/config.h"
#include "locant/text/tokenizer.h"

namespace locant::inline v0 {

// tokenizer_config.json of a folder, or an empty one.
Config tokenizer_config(const std::string& dir);

// What a family calls its special tokens unless a file says otherwise: {{"unk_token", "[UNK]"}}.
// Of others there is a token only if a file has one.
using TokenNames = std::map<std::string, std::string>;

// Reads tokenizer_config.json, special_tokens_map.json and added_tokens.json; `listed` are the
// added tokens of a tokenizer.json. `find` gives the id of a token in the vocabulary or -1; tokens
// that nobody numbers follow after the vocabulary's `size` ids.
SpecialTokens read_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                                  int64_t size, const TokenNames& names,
                                  const std::function<int64_t(const std::string&)>& find);

// truncation_side of tokenizer_config.json; `usual` if it does not say.
bool cuts_at_the_left(const Config& config, bool usual = false);

}  // namespace locant::inline v0
