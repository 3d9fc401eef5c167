// SentencePiece follows the offsets of a model's table of normalisations as they are: models that
// lead it astray are refused before it sees them.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "locant/text/tokenizer.h"
#include "tests/message_of.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

std::string good_model() {
  std::ifstream file(LOCANT_TEST_DATA "/unigram.model", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A field of a protobuf message that has a length.
std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    out += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
    if (size <= 0x7f) break;
  }
  return out + bytes;
}

// A model with this trie and these strings in its normalizer_spec, and nothing else.
std::string model_of(const std::vector<uint32_t>& units, const std::string& strings) {
  const auto size = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string map(reinterpret_cast<const char*>(&size), sizeof size);
  map.append(reinterpret_cast<const char*>(units.data()), size);
  return field(3, field(2, map + strings));
}

std::string complaint_about(const std::string& model) {
  const TemporaryFolder folder;
  folder.write("spm.model", model);
  const std::string message = message_of([&] { load_tokenizer(folder.path()); });
  const std::string begin = "[tokenizer] " + (folder / "spm.model");
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

// A double array that knows the one key "a": the root leads by 256 to a block of its own, 'a' there
// leads to the next block, whose first unit holds the value.
std::vector<uint32_t> one_key(uint32_t value) {
  std::vector<uint32_t> units(768, 1u << 31);  // values: no walk steps on them
  units[0] = 256u << 10;
  units[256 ^ 'a'] = (256u ^ 512u) << 10 | 1u << 8 | 'a';  // ends a key
  units[256 ^ 'a' ^ 256 ^ 512] = 1u << 31 | value;
  return units;
}

// As Darts makes it of "ac" and "bc", where both are replaced by one string: the end is shared.
std::vector<uint32_t> two_keys_with_one_end() {
  std::vector<uint32_t> units(1024, 1u << 31);
  units[0] = 256u << 10;
  for (const uint32_t c : {'a', 'b'}) units[256 ^ c] = (256u ^ c ^ 512u) << 10 | c;
  units[512 ^ 'c'] = (512u ^ 'c' ^ 768u) << 10 | 1u << 8 | 'c';
  units[768] = 1u << 31;
  return units;
}

TEST(UntrustedVocabularies, TablesOfNormalisationsThatLeadAstray) {
  const std::string begin = ": its table of normalisations ";
  const std::string strings("b\0", 2);
  EXPECT_EQ(complaint_about(model_of(one_key(2), strings)),
            begin + "has a value outside of the strings");
  EXPECT_EQ(complaint_about(model_of(one_key(0), "b")), begin + "does not end with a string");
  EXPECT_EQ(complaint_about(model_of({}, strings)), begin + "has no units");
  EXPECT_EQ(complaint_about(model_of(std::vector<uint32_t>(100, 0xff), strings)),
            begin + "leads outside of itself");
  EXPECT_EQ(complaint_about(model_of(one_key(1), std::string("\xc3\xa9\0", 3))),
            begin + "has a value inside of a character");
  EXPECT_EQ(complaint_about(model_of(one_key(0), std::string("\xff\0", 2))),
            begin + "is not UTF-8 at byte 0");
  std::vector<uint32_t> circle = one_key(0);
  circle[256 ^ 'a'] = uint32_t{'a'} << 10 | 'a';  // its base is 256, as the root's
  EXPECT_EQ(complaint_about(model_of(circle, strings)), begin + "leads back to where it came from");
  EXPECT_EQ(complaint_about(field(3, field(2, "abc"))), begin + "is too short");
  EXPECT_EQ(complaint_about(field(3, field(2, "\xff\xff\xff\x7f"))), begin + "has a wrong size");
  EXPECT_EQ(complaint_about("\x1a\x7f"),
            ": is no SentencePiece model: its fields do not follow one another");
  // A good table passes, and then SentencePiece misses the rest.
  for (const auto& units : {one_key(0), two_keys_with_one_end()})
    EXPECT_TRUE(
        complaint_about(model_of(units, strings)).starts_with(": is no SentencePiece model: '"));
}

// A piece of no bytes ends in an exception of the library's trie.
TEST(UntrustedVocabularies, PiecesThatSentencePieceCannotHold) {
  std::string bad = good_model();
  const size_t piece = bad.find(
      "\x0a\x08\xe2\x96\x81"
      "hello");
  ASSERT_NE(piece, bad.npos);
  // The same number of bytes: an empty piece, and a field that nobody knows.
  bad.replace(piece, 10, std::string("\x0a\x00\x7a\x06......", 10));
  EXPECT_TRUE(complaint_about(bad).starts_with(": is no SentencePiece model: '"))
      << complaint_about(bad);
}

// Refused, or read without harm; what a flipped bit makes of the ids is not asked.
TEST(UntrustedVocabularies, EveryFlippedBitOfAModelIsRefusedOrHarmless) {
  const std::string good = good_model();
  ASSERT_GT(good.size(), 1000u);
  const TemporaryFolder folder;
  int refused = 0, taken = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      folder.write("spm.model", bad);
      const std::string message = message_of([&] {
        const auto tokenizer = load_tokenizer(folder.path());
        const Encoded encoded = tokenizer->encode(
            "Hello \xc3\x84"
            "A world \xe4\xbd\xa0");
        static_cast<void>(tokenizer->decode(encoded.ids));
      });
      (message == "no error" ? taken : refused)++;
    }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

TEST(UntrustedVocabularies, EmptySpecialTokensAreRefused) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const std::string path = folder / "tokenizer_config.json";
  folder.write("tokenizer_config.json", R"({"pad_token":""})");
  EXPECT_EQ(message_of([&] { load_tokenizer(folder.path()); }),
            "[config] " + path + ": pad_token must not be empty");
  folder.write("tokenizer_config.json", "{}");
  folder.write("added_tokens.json", R"({"":7})");
  EXPECT_EQ(message_of([&] { load_tokenizer(folder.path()); }),
            "[config] " + (folder / "added_tokens.json") + ": '' must not be empty");
}

}  // namespace
}  // namespace locant
