// Text from tokens that come one by one.
//   TextStream text(decode, prompt);
//   for (const int64_t token : new_tokens) std::cout << text.add(token);
//   std::cout << text.end();
// The parts together are decode(prompt and new tokens) without decode(prompt): a word's space is
// there, and a character of several byte tokens comes when its last byte does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace locant::inline v0 {

class TextStream {
 public:
  using Decode = std::function<std::string(std::span<const int64_t>)>;

  // `before`: tokens that the new ones continue; empty if they are a text of their own.
  TextStream(Decode decode, std::vector<int64_t> before)
      : decode_(std::move(decode)), ids_(std::move(before)) {
    if (!ids_.empty()) given_ = decode_(ids_).size();
  }

  // What is certain by now and has not been given before.
  std::string add(int64_t token) {
    ids_.push_back(token);
    const std::string text = decode_(ids_);
    return take(text, whole_characters(text));
  }

  // The rest: U+FFFD in the place of a character whose last bytes never came.
  std::string end() {
    const std::string text = decode_(ids_);
    return take(text, text.size());
  }

 private:
  // How long the text is without a character at its end whose last bytes may still come: a decoder
  // leaves them as they are, or writes U+FFFD for each.
  static size_t whole_characters(std::string_view text) {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    while (text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
    size_t begin = text.size();  // of the last character's bytes after its first
    while (begin > 0 && text.size() - begin < 4 && (text[begin - 1] & 0xC0) == 0x80) --begin;
    if (begin == 0) return text.size();
    const auto first = static_cast<unsigned char>(text[begin - 1]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return begin - 1 + bytes <= text.size() ? text.size() : begin - 1;
  }

  std::string take(const std::string& text, size_t end) {
    if (end <= given_) return "";
    const size_t begin = std::exchange(given_, end);
    return text.substr(begin, end - begin);
  }

  Decode decode_;
  std::vector<int64_t> ids_;
  size_t given_ = 0;  // bytes
};

}  // namespace locant::inline v0
