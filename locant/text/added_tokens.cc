#include "locant/text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr int64_t kMostIds = int64_t{1} << 31;

Config optional_config(const std::string& dir, const char* name) {
  const std::string path = join_path(dir, name);
  return is_file(path) ? Config::read(path) : Config::parse("{}", path);
}

// A token's text: "[CLS]" or {"content": "[CLS]", ...}.
std::string content_of(const Config& config, const std::string& key) {
  return config.is_text(key) ? config.text(key) : config.child(key).text("content");
}

// {"content": "[MASK]", "lstrip": false, ...}
void add_token(int64_t id, const Config& entry,
               const std::function<bool(const std::string&)>& unchanged,
               std::map<std::string, AddedToken>& out) {
  AddedToken token{.content = entry.text("content"), .id = id};
  if (token.content.empty()) entry.reject("content", "must not be empty");
  token.special = entry.flag_or("special", false);
  token.left_strip = entry.flag_or("lstrip", false);
  token.right_strip = entry.flag_or("rstrip", false);
  token.single_word = entry.flag_or("single_word", false);
  if (entry.flag_or("normalized", false) && !unchanged(token.content))
    entry.reject("normalized", "is true for the token " + shown(token.content) +
                                   ", which the tokenizer changes: not supported; make ids with "
                                   "Python's tokenizers");
  out[token.content] = token;
}

// The id that is a key of added_tokens_decoder: {"128000": {"content": "[MASK]", ...}}
int64_t id_of(const Config& decoder, const std::string& key) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= kMostIds)
    decoder.reject(key, "is no token id");
  return id;
}

// The character that begins at a byte.
int32_t code_at(std::string_view text, size_t begin) {
  utf8proc_int32_t code = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + begin,
                   static_cast<utf8proc_ssize_t>(text.size() - begin), &code);
  return code;
}

// Where the character before `at` begins.
size_t before(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

// Where the character after that at `at` begins.
size_t after(std::string_view text, size_t at) {
  do {
    ++at;
  } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

// Letters, digits, marks and connectors: \w.
bool is_word(int32_t code) {
  const utf8proc_category_t kind = utf8proc_category(code);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ND) ||
         kind == UTF8PROC_CATEGORY_PC;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !is_word(code_at(text, before(text, begin)))) &&
         (end == text.size() || !is_word(code_at(text, end)));
}

}  // namespace

Config tokenizer_config(const std::string& dir) {
  return optional_config(dir, kConfig);
}

SpecialTokens read_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                                  int64_t size, const TokenNames& names,
                                  const std::function<int64_t(const std::string&)>& find,
                                  const std::function<bool(const std::string&)>& unchanged) {
  const Config config = tokenizer_config(dir);
  const Config map = optional_config(dir, "special_tokens_map.json");
  const Config added = optional_config(dir, "added_tokens.json");

  std::map<std::string, AddedToken> tokens;
  for (const std::string& content : added.keys()) {
    if (content.empty()) added.reject("''", "must not be empty");
    tokens[content] = {
        .content = content, .id = added.integer(content, 0, kMostIds - 1), .special = false};
  }
  for (const Config& entry : listed)
    add_token(entry.integer("id", 0, kMostIds - 1), entry, unchanged, tokens);
  if (config.has("added_tokens_decoder")) {
    const Config decoder = config.child("added_tokens_decoder");
    for (const std::string& key : decoder.keys())
      add_token(id_of(decoder, key), decoder.child(key), unchanged, tokens);
  }

  int64_t next = size;
  for (const auto& [_, token] : tokens) next = std::max(next, token.id + 1);
  const auto special = [&](const std::string& content) {
    auto found = tokens.find(content);
    if (found == tokens.end()) {
      const int64_t known = find(content);
      AddedToken token{.content = content, .id = known >= 0 ? known : next++};
      found = tokens.emplace(content, token).first;
    }
    found->second.special = true;
    return found->second.id;
  };
  SpecialTokens out;
  const std::map<std::string_view, int64_t*> roles = {{"unk_token", &out.unk},
                                                      {"sep_token", &out.sep},
                                                      {"pad_token", &out.pad},
                                                      {"cls_token", &out.cls},
                                                      {"mask_token", &out.mask},
                                                      {"bos_token", &out.bos},
                                                      {"eos_token", &out.eos}};
  for (const auto& [key, fallback] : names) {
    const Config& source = config.has(key) ? config : map;
    if (fallback.empty() && !source.has(key)) continue;
    const std::string content = source.has(key) ? content_of(source, key) : fallback;
    if (content.empty()) source.reject(key, "must not be empty");
    const int64_t id = special(content);
    if (const auto role = roles.find(key); role != roles.end()) *role->second = id;
  }
  for (auto& [_, token] : tokens) out.added.push_back(std::move(token));
  return out;
}

std::vector<Segment> split_at_added_tokens(std::string_view text,
                                           const std::vector<AddedToken>& tokens) {
  // By their first byte, longest first.
  std::array<std::vector<const AddedToken*>, 256> by_first;
  for (const AddedToken& token : tokens)
    by_first[static_cast<unsigned char>(token.content[0])].push_back(&token);
  for (auto& list : by_first)
    std::sort(list.begin(), list.end(), [](const AddedToken* a, const AddedToken* b) {
      return a->content.size() > b->content.size();
    });

  std::vector<Segment> out;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* found = nullptr;
    for (const AddedToken* token : by_first[static_cast<unsigned char>(text[at])])
      if (text.substr(at).starts_with(token->content)) {
        found = token;
        break;
      }
    if (found == nullptr ||
        (found->single_word && !stands_alone(text, at, at + found->content.size()))) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found->content.size();
    while (found->left_strip && begin > done && is_space(code_at(text, before(text, begin))))
      begin = before(text, begin);
    while (found->right_strip && end < text.size() && is_space(code_at(text, end)))
      end = after(text, end);
    if (begin > done) out.push_back({{done, begin}, nullptr});
    out.push_back({{at, at + found->content.size()}, found});
    at = done = end;
  }
  if (done < text.size()) out.push_back({{done, text.size()}, nullptr});
  return out;
}

}  // namespace locant::inline v0
