// Text from tokens that come one by one: no part of a character is given out before it is whole.
#include "locant/text/text_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace locant {
namespace {

// Token n is the byte n, and bytes stay as they are: a decoder that repairs nothing.
std::string bytes_of(std::span<const int64_t> ids) {
  std::string out;
  for (const int64_t id : ids) out += static_cast<char>(id);
  return out;
}

// As SentencePiece does it: U+FFFD for each byte of a character at the text's end that is not
// whole. Enough for texts whose only broken character is the last one.
std::string repaired(std::span<const int64_t> ids) {
  std::string out = bytes_of(ids);
  size_t begin = out.size();
  while (begin > 0 && (out[begin - 1] & 0xC0) == 0x80) --begin;
  if (begin == 0) return out;
  const auto first = static_cast<unsigned char>(out[begin - 1]);
  const size_t wanted = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const size_t there = out.size() - begin + 1;
  if (there >= wanted) return out;
  out.resize(begin - 1);
  for (size_t n = 0; n < there; ++n) out += "\xEF\xBF\xBD";
  return out;
}

std::vector<std::string> parts_of(const TextStream::Decode& decode, const std::string& text,
                                  const std::vector<int64_t>& before = {}) {
  TextStream stream(decode, before);
  std::vector<std::string> parts;
  for (const char c : text) parts.push_back(stream.add(static_cast<unsigned char>(c)));
  parts.push_back(stream.end());
  return parts;
}

TEST(TextStream, CharactersComeWhenTheirLastByteDoes) {
  const std::vector<std::string> expected = {"a", "", "é", "", "", "€", "", "", "", "😀", "b", ""};
  EXPECT_EQ(parts_of(bytes_of, "aé€😀b"), expected);
  EXPECT_EQ(parts_of(repaired, "aé€😀b"), expected);
}

TEST(TextStream, WhatNeverBecameWholeComesAtTheEnd) {
  EXPECT_EQ(parts_of(bytes_of, "a\xE2\x82"), (std::vector<std::string>{"a", "", "", "\xE2\x82"}));
  EXPECT_EQ(parts_of(repaired, "a\xE2\x82"),
            (std::vector<std::string>{"a", "", "", "\xEF\xBF\xBD\xEF\xBF\xBD"}));
}

TEST(TextStream, TheTextBeforeIsNotGivenAgain) {
  const std::vector<int64_t> before = {'d', 'e', 'f'};
  EXPECT_EQ(parts_of(bytes_of, " f", before), (std::vector<std::string>{" ", "f", ""}));
  // A decoder that drops the first space, as SentencePiece does, must see what stands before.
  const auto without_first_space = [](std::span<const int64_t> ids) {
    const std::string text = bytes_of(ids);
    return text.starts_with(' ') ? text.substr(1) : text;
  };
  EXPECT_EQ(parts_of(without_first_space, " f", {' ', 'x'}),
            (std::vector<std::string>{" ", "f", ""}));
  EXPECT_EQ(parts_of(without_first_space, " f"), (std::vector<std::string>{"", "f", ""}));
}

TEST(TextStream, ARealReplacementCharacterIsText) {
  EXPECT_EQ(parts_of(bytes_of, "a\uFFFD."),
            (std::vector<std::string>{"a", "", "", "", "\uFFFD.", ""}));
}

}  // namespace
}  // namespace locant
