#include "locant/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

// Where utf8proc knows punctuation, marks and formats that Unicode 8.0 did not have: between these
// bounds every character of those categories is new.
constexpr std::array<std::pair<int32_t, int32_t>, 40> kNewer = {{
    {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8e2},     {0x9fd, 0x9fe},
    {0xa76, 0xa76},     {0xafa, 0xaff},     {0xb55, 0xb55},     {0xc04, 0xc3c},
    {0xc77, 0xc77},     {0xc84, 0xc84},     {0xd00, 0xd00},     {0xd3b, 0xd3c},
    {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x180f, 0x1886},
    {0x1abf, 0x1ace},   {0x1b7d, 0x1b7e},   {0x1df6, 0x1dfb},   {0x2e43, 0x2e5d},
    {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},   {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},
    {0x10d24, 0x10f89}, {0x11070, 0x11074}, {0x110c2, 0x110cd}, {0x111cf, 0x111cf},
    {0x1123e, 0x11241}, {0x1133b, 0x1133b}, {0x11438, 0x1145e}, {0x11660, 0x1166c},
    {0x116b9, 0x116b9}, {0x1182f, 0x11fff}, {0x12ff1, 0x13455}, {0x16e97, 0x16f4f},
    {0x16fe2, 0x16fe4}, {0x1cf00, 0x1cf46}, {0x1e000, 0x1e4ef}, {0x1e944, 0x1e95f},
}};

bool is_newer(int32_t code) {
  const auto after = std::upper_bound(kNewer.begin(), kNewer.end(), code,
                                      [](int32_t c, const auto& range) { return c < range.first; });
  return after != kNewer.begin() && code <= std::prev(after)->second;
}

// The category in Unicode 8.0.
utf8proc_category_t category(int32_t code) {
  if (code == 0x166d || code == 0x111c9) return UTF8PROC_CATEGORY_PO;
  if (code == 0x1734) return UTF8PROC_CATEGORY_MN;
  return utf8proc_category(code);
}

}  // namespace

void require_utf8(std::string_view what, std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  for (utf8proc_ssize_t at = 0; at < size;) {
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t used = utf8proc_iterate(bytes + at, size - at, &code);
    require(used > 0, "tokenizer", what, " is not UTF-8 at byte ", at);
    at += used;
  }
}

std::vector<Character> characters_of(std::string_view text, size_t offset) {
  std::vector<Character> out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  for (utf8proc_ssize_t at = 0; at < size;) {
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t used = utf8proc_iterate(bytes + at, size - at, &code);
    require(used > 0, "tokenizer", "text is not UTF-8 at byte ", offset + at);
    const size_t begin = offset + static_cast<size_t>(at);
    out.push_back({code, begin, begin + static_cast<size_t>(used)});
    at += used;
  }
  return out;
}

void append_utf8(int32_t code, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_punctuation(int32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !is_newer(code);
}

bool is_control(int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CO ||
         (kind == UTF8PROC_CATEGORY_CF && !is_newer(code));
}

bool is_accent(int32_t code) {
  return category(code) == UTF8PROC_CATEGORY_MN && !is_newer(code);
}

bool is_space(int32_t code) {
  if ((code >= '\t' && code <= '\r') || code == 0x85) return true;
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_ZP;
}

bool is_word(int32_t code) {
  const utf8proc_category_t kind = utf8proc_category(code);
  if ((kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) ||
      kind == UTF8PROC_CATEGORY_PC || code == 0x200c || code == 0x200d)
    return true;
  const auto between = [code](int32_t first, int32_t last) {
    return code >= first && code <= last;
  };
  // Other_Alphabetic beyond the marks: letters in circles and squares.
  return between(0x24b6, 0x24e9) || between(0x1f130, 0x1f149) || between(0x1f150, 0x1f169) ||
         between(0x1f170, 0x1f189);
}

bool is_chinese(int32_t code) {
  const auto between = [code](int32_t first, int32_t last) {
    return code >= first && code <= last;
  };
  // 0x2b820 to 0x2b91f are ideographs too, but not for Hugging Face's tokenizers.
  return between(0x4e00, 0x9fff) || between(0x3400, 0x4dbf) || between(0x20000, 0x2a6df) ||
         between(0x2a700, 0x2b81f) || between(0x2b920, 0x2ceaf) || between(0xf900, 0xfaff) ||
         between(0x2f800, 0x2fa1f);
}

void append_lower_case(const Character& character, std::vector<Character>& out) {
  Character lower = character;
  lower.code = utf8proc_tolower(character.code);
  out.push_back(lower);
  if (character.code != 0x130) return;  // the one letter that becomes two: I with a dot above
  lower.code = 0x307;
  out.push_back(lower);
}

std::vector<Character> decomposed(const std::vector<Character>& text) {
  std::vector<Character> out;
  out.reserve(text.size());
  for (const Character& character : text) {
    utf8proc_int32_t codes[8];  // four suffice for every canonical decomposition
    int last_class = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(character.code, codes, 8, UTF8PROC_DECOMPOSE, &last_class);
    for (utf8proc_ssize_t n = 0; n < count; ++n)
      out.push_back({codes[n], character.begin, character.end});
  }
  const auto rank = [](const Character& x) {
    return utf8proc_get_property(x.code)->combining_class;
  };
  for (auto begin = out.begin(); begin != out.end();) {
    begin = std::find_if(begin, out.end(), [&](const Character& x) { return rank(x) != 0; });
    const auto end =
        std::find_if(begin, out.end(), [&](const Character& x) { return rank(x) == 0; });
    std::stable_sort(begin, end,
                     [&](const Character& a, const Character& b) { return rank(a) < rank(b); });
    begin = end;
  }
  return out;
}

}  // namespace locant::inline v0
