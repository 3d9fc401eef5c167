// What must hold for every text and tokenizer.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "locant/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace locant::fuzz {

// Unicode's table 3-7, well-formed UTF-8, as a decoder of its own: lead byte, then the range of the
// second one.
inline bool is_utf8(std::string_view text) {
  const auto at = [&](size_t n) { return static_cast<unsigned char>(text[n]); };
  for (size_t n = 0; n < text.size();) {
    const unsigned char lead = at(n);
    size_t length = 1;
    unsigned char low = 0x80, high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) length = 2;
    if (lead >= 0xe0 && lead <= 0xef) length = 3;
    if (lead >= 0xf0 && lead <= 0xf4) length = 4;
    if (lead >= 0x80 && length == 1) return false;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    if (length > text.size() - n) return false;
    for (size_t next = 1; next < length; ++next) {
      if (at(n + next) < low || at(n + next) > high) return false;
      low = 0x80;
      high = 0xbf;
    }
    n += length;
  }
  return true;
}

inline bool is_boundary(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
}

inline void encode_and_check(const Tokenizer& tokenizer, std::string_view text) {
  Encoded whole;
  const std::string complaint = complaint_of([&] { whole = tokenizer.encode(text); });
  if (!complaint.empty()) {
    expect(!is_utf8(text) || complaint.find("SentencePiece") != complaint.npos ||
               complaint.find("not UTF-8") == complaint.npos,
           "UTF-8 is refused: " + complaint);
    return;
  }
  expect(is_utf8(text), "a text that is not UTF-8 is taken");
  expect(whole.ids.size() == whole.bytes.size() && whole.ids.size() == whole.token_type_ids.size(),
         "lists of different lengths");
  expect(whole.cut == 0, "cut without being asked");
  for (size_t n = 0; n < whole.ids.size(); ++n) {
    expect(whole.ids[n] >= 0 && whole.ids[n] < tokenizer.size(), "an id out of range");
    static_cast<void>(tokenizer.piece(whole.ids[n]));
    const ByteRange bytes = whole.bytes[n];
    expect(bytes.begin <= bytes.end && bytes.end <= text.size(), "bytes outside of the text");
    if (bytes.begin < bytes.end)
      expect(is_boundary(text, bytes.begin) && is_boundary(text, bytes.end), "half a character");
  }
  complaint_of([&] { static_cast<void>(tokenizer.decode(whole.ids)); });

  const std::vector<int64_t> bare = tokenizer.encode(text, {.special_tokens = false}).ids;
  expect(bare.empty() || std::search(whole.ids.begin(), whole.ids.end(), bare.begin(),
                                     bare.end()) != whole.ids.end(),
         "special tokens change the others");
  const Encoded cut = tokenizer.encode(text, {.max_length = 3, .special_tokens = false});
  expect(cut.ids.size() <= 3, "not cut");
  expect(cut.ids.size() + static_cast<size_t>(cut.cut) == bare.size(), "tokens are lost");
  expect(std::equal(cut.ids.begin(), cut.ids.end(), bare.begin()), "another token after a cut");
  const Encoded pair = tokenizer.encode(text, text, {.special_tokens = false});
  expect(pair.ids.size() == 2 * bare.size(), "a pair is not two texts");
}

}  // namespace locant::fuzz
