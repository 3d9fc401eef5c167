#include "locant/text/token_finder.h"

#include <algorithm>
#include <utility>

#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

unsigned char byte_at(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_inside_a_character(std::string_view text, size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xc0) == 0x80;
}

// Where the character before `at` begins.
size_t before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && is_inside_a_character(text, at));
  return at;
}

// Where the character after that at `at` begins.
size_t after(std::string_view text, size_t at) {
  do ++at;
  while (is_inside_a_character(text, at));
  return at;
}

int32_t code_at(std::string_view text, size_t at) {
  return characters_of(text.substr(at, after(text, at) - at)).front().code;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !is_word(code_at(text, before(text, begin)))) &&
         (end == text.size() || !is_word(code_at(text, end)));
}

}  // namespace

TokenFinder::TokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  const auto same = [](const Pattern& a, const Pattern& b) { return a.text == b.text; };
  patterns_.erase(std::unique(patterns_.begin(), patterns_.end(), same), patterns_.end());
  for (const Pattern& pattern : patterns_) ++by_first_[byte_at(pattern.text, 0) + 1u];
  for (size_t n = 1; n < by_first_.size(); ++n) by_first_[n] += by_first_[n - 1];
}

const TokenFinder::Pattern* TokenFinder::longest_at(std::string_view text, size_t at) const {
  auto low = patterns_.begin() + static_cast<std::ptrdiff_t>(by_first_[byte_at(text, at)]);
  auto high = patterns_.begin() + static_cast<std::ptrdiff_t>(by_first_[byte_at(text, at) + 1u]);
  const Pattern* found = nullptr;
  // low to high: the patterns whose first `size` bytes are the text's.
  for (size_t size = 1; low != high; ++size) {
    if (low->text.size() == size) found = &*low++;  // what is a beginning of others is before them
    if (at + size == text.size()) break;
    const unsigned char next = byte_at(text, at + size);
    low = std::partition_point(
        low, high, [&](const Pattern& pattern) { return byte_at(pattern.text, size) < next; });
    high = std::partition_point(
        low, high, [&](const Pattern& pattern) { return byte_at(pattern.text, size) == next; });
  }
  return found;
}

std::vector<Segment> TokenFinder::split(std::string_view text) const {
  std::vector<Segment> out;
  size_t done = 0;
  size_t spaces = 0;  // until here white space was swallowed: tokens in it count nevertheless
  for (size_t at = 0; at < text.size();) {
    const Pattern* found = longest_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const AddedToken& token = *found->token;
    const ByteRange bytes = {at, at + found->text.size()};
    at = bytes.end;
    if (token.single_word && !stands_alone(text, bytes.begin, bytes.end)) continue;
    auto [begin, end] = bytes;
    while (token.left_strip && begin > done && is_space(code_at(text, before(text, begin))))
      begin = before(text, begin);
    if (token.right_strip) {
      end = std::max(end, spaces);
      while (end < text.size() && is_space(code_at(text, end))) end = after(text, end);
      spaces = end;
    }
    if (begin > done) out.push_back({{done, begin}, nullptr});
    out.push_back({bytes, &token});
    done = end;
  }
  if (done < text.size()) out.push_back({{done, text.size()}, nullptr});
  return out;
}

}  // namespace locant::inline v0
