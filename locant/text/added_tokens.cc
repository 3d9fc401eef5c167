#include "locant/text/added_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/file.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kDecoder = "added_tokens_decoder";
constexpr const char* kExtra = "extra_special_tokens";
constexpr const char* kAdditional = "additional_special_tokens";  // its name before transformers 5
constexpr std::string_view kNamed = "_token";
constexpr int64_t kMostIds = int64_t{1} << 31;

// In the order in which Hugging Face numbers those that the vocabulary lacks.
constexpr std::array<std::pair<const char*, int64_t SpecialTokens::*>, 7> kRoles = {{
    {"bos_token", &SpecialTokens::bos},
    {"eos_token", &SpecialTokens::eos},
    {"unk_token", &SpecialTokens::unk},
    {"sep_token", &SpecialTokens::sep},
    {"pad_token", &SpecialTokens::pad},
    {"cls_token", &SpecialTokens::cls},
    {"mask_token", &SpecialTokens::mask},
}};

Config optional_config(const std::string& dir, const char* name) {
  const std::string path = join_path(dir, name);
  return is_file(path) ? Config::read(path) : Config::parse("{}", path);
}

// {"content": "[MASK]", "lstrip": false, ...}
AddedToken token_from(const Config& entry, bool special) {
  AddedToken token{.content = entry.text("content")};
  if (token.content.empty()) entry.reject("content", "must not be empty");
  token.special = entry.flag_or("special", special);
  token.normalized = entry.flag_or("normalized", !token.special);
  token.left_strip = entry.flag_or("lstrip", false);
  token.right_strip = entry.flag_or("rstrip", false);
  token.single_word = entry.flag_or("single_word", false);
  return token;
}

// A special token: "[CLS]" or {"content": "[CLS]", ...}.
AddedToken special_token_from(const Config& config, const std::string& key) {
  AddedToken token{.content = config.is_text(key) ? config.text(key) : ""};
  if (!config.is_text(key)) token = token_from(config.child(key), true);
  if (token.content.empty()) config.reject(key, "must not be empty");
  token.special = true;
  return token;
}

// The id that is a key of added_tokens_decoder: {"128000": {"content": "[MASK]", ...}}
int64_t id_of(const Config& decoder, const std::string& key) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= kMostIds)
    decoder.reject(key, "is no token id");
  return id;
}

// All tokens of a folder, by their texts.
class Collection {
 public:
  Collection(int64_t size, const std::function<int64_t(const std::string&)>& find)
      : next_(size), find_(find) {}

  // {"content": id, ...} of added_tokens.json, which says no more of them.
  void add_plain(const Config& added) {
    for (const std::string& content : added.keys()) {
      if (content.empty()) added.reject("''", "must not be empty");
      add({.content = content,
           .id = added.integer(content, 0, kMostIds - 1),
           .special = false,
           .normalized = true});
      plain_.insert(content);
    }
  }

  // An entry of added_tokens_decoder or of tokenizer.json.
  void add_entry(int64_t id, const Config& entry) {
    AddedToken token = token_from(entry, false);
    token.id = id;
    plain_.erase(token.content);
    add(std::move(token));
  }

  // A token that a file calls special. What entries say of it stands, but for a role's.
  int64_t add_special(AddedToken token, bool has_role) {
    const auto found = tokens_.find(token.content);
    if (found == tokens_.end()) {
      const int64_t known = find_(token.content);
      token.id = known >= 0 ? known : next_;
      const int64_t id = token.id;
      add(std::move(token));
      return id;
    }
    AddedToken& there = found->second;
    if (plain_.contains(there.content)) there.normalized = false;
    there.special |= has_role || plain_.contains(there.content);
    return there.id;
  }

  bool numbers(const std::string& content) const {
    return tokens_.contains(content) || find_(content) >= 0;
  }

  std::vector<AddedToken> take() {
    std::vector<AddedToken> out;
    out.reserve(tokens_.size());
    for (auto& [_, token] : tokens_) out.push_back(std::move(token));
    std::sort(out.begin(), out.end(), [](const AddedToken& a, const AddedToken& b) {
      return std::pair(a.id, std::string_view(a.content)) <
             std::pair(b.id, std::string_view(b.content));
    });
    return out;
  }

 private:
  void add(AddedToken token) {
    next_ = std::max(next_, token.id + 1);
    std::string content = token.content;
    tokens_.insert_or_assign(std::move(content), std::move(token));
  }

  int64_t next_;  // the id of the next token that nobody numbers
  const std::function<int64_t(const std::string&)>& find_;
  std::unordered_map<std::string, AddedToken> tokens_;
  std::unordered_set<std::string> plain_;
};

// Special tokens with names of their own: {"image_token": "<image>", ...}.
void add_named(const Config& config, const std::vector<std::string>& keys, Collection& tokens) {
  bool is_new = false;
  for (const std::string& key : keys) {
    AddedToken token = special_token_from(config, key);
    // They are numbered as they stand in the file, which an object of JSON does not tell.
    if (!tokens.numbers(token.content) && std::exchange(is_new, true))
      config.reject(key,
                    "is not the only token here that no file numbers: not supported; make "
                    "ids with Python's tokenizers");
    tokens.add_special(std::move(token), true);
  }
}

void add_extra(const Config& config, Collection& tokens) {
  std::vector<std::string> named;
  for (const std::string& key : config.keys()) {
    const bool role = std::any_of(kRoles.begin(), kRoles.end(),
                                  [&](const auto& known) { return known.first == key; });
    if (!role && key.ends_with(kNamed) && config.is_text(key)) named.push_back(key);
  }
  add_named(config, named, tokens);
  const char* key = config.has(kExtra) ? kExtra : kAdditional;
  if (config.has(key) && !config.is_list(key)) {
    const Config object = config.child(key);
    add_named(object, object.keys(), tokens);
  } else if (config.has(key)) {
    const Config list = config.items(key);
    for (size_t n = 0; list.has(std::to_string(n)); ++n)
      tokens.add_special(special_token_from(list, std::to_string(n)), false);
  }
}

}  // namespace

Config tokenizer_config(const std::string& dir) {
  return optional_config(dir, kConfig);
}

SpecialTokens read_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                                  int64_t size, const TokenNames& names,
                                  const std::function<int64_t(const std::string&)>& find) {
  const Config config = tokenizer_config(dir);
  const bool complete = config.has(kDecoder);
  // An older file, which goes before the config that lies beside it.
  const Config map = optional_config(dir, "special_tokens_map.json");

  Collection tokens(size, find);
  tokens.add_plain(optional_config(dir, "added_tokens.json"));
  for (const Config& entry : listed) tokens.add_entry(entry.integer("id", 0, kMostIds - 1), entry);
  if (complete) {
    const Config decoder = config.child(kDecoder);
    for (const std::string& key : decoder.keys())
      tokens.add_entry(id_of(decoder, key), decoder.child(key));
  }

  SpecialTokens out;
  for (const auto& [key, role] : kRoles) {
    const bool in_map = !complete && (map.has(key) || map.is_null(key));
    const Config& source = in_map ? map : config;
    const auto usual = names.find(key);
    if (source.is_null(key) || (!source.has(key) && usual == names.end())) continue;
    out.*role = tokens.add_special(
        source.has(key) ? special_token_from(source, key) : AddedToken{.content = usual->second},
        true);
  }
  add_extra(config, tokens);
  if (!complete) add_extra(map, tokens);
  out.added = tokens.take();
  return out;
}

bool cuts_at_the_left(const Config& config, bool usual) {
  constexpr const char* kSide = "truncation_side";
  return config.has(kSide) ? config.choice(kSide, {"left", "right"}) == "left" : usual;
}

}  // namespace locant::inline v0
