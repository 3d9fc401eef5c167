#include "locant/draw/text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace locant::inline v0 {

namespace {

std::string fixed_text(double value, int decimals) {
  std::array<char, 400> buffer;
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed, decimals).ptr;
  return {buffer.begin(), end};
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
