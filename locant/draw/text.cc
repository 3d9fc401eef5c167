#include "locant/draw/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace locant::inline v0 {

namespace {

std::string fixed_text(double value, int decimals) {
  std::array<char, 400> buffer;
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed, decimals).ptr;
  return {buffer.begin(), end};
}

// Bytes of the UTF-8 character that begins there, or 0 if none does.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t n) { return static_cast<uint8_t>(text[n]); };
  const size_t size = byte(0) < 0x80   ? 1
                      : byte(0) < 0xc2 ? 0
                      : byte(0) < 0xe0 ? 2
                      : byte(0) < 0xf0 ? 3
                      : byte(0) < 0xf5 ? 4
                                       : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t n = 1; n < size; ++n)
    if (byte(n) < 0x80 || byte(n) >= 0xc0) return 0;
  // Surrogates, U+FFFE and U+FFFF have no place in XML; too long forms have none anywhere.
  if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;
  if (byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xf4 && byte(1) >= 0x90) return 0;
  return size;
}

}  // namespace

std::string number_text(double value, int decimals) {
  std::string text = fixed_text(value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string label_text(double value, int decimals) {
  const std::string digits = fixed_text(std::abs(value), decimals);
  const bool negative = value < 0 && digits.find_first_not_of("0.") != std::string::npos;
  std::string text = negative ? "−" : "";
  return text += digits;
}

std::string printable(std::string_view text, int most) {
  std::string out;
  for (int count = 0; !text.empty(); ++count) {
    if (count == most) return out += "…";
    const size_t size = character_size(text);
    const auto byte = static_cast<uint8_t>(text[0]);
    if (size == 0)
      out += "\uFFFD";
    else if (byte == '\n')
      out += "↵";
    else if (byte < 0x20 || byte == 0x7f)
      out += "·";
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace locant::inline v0
