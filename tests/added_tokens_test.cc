// Added tokens: which files they come from, and where they stand in texts. The ids are those of
// Hugging Face's tokenizers; python/tests/test_tokenizers_added.py compares many more with them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "locant/text/tokenizer.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

using Ids = std::vector<int64_t>;

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfox\ndog\n[\nmask\n]\n[E1]\ncovid\n";  // 12 pieces

Ids ids_of(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.special_tokens = false}).ids;
}

// Of the vocabulary above with another file beside it.
Ids ids_with(const char* name, const std::string& file, std::string_view text) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write(name, file);
  return ids_of(*load_tokenizer(folder.path()), text);
}

TEST(AddedTokens, ComeFromEveryFileThatNamesThem) {
  const std::string text = "fox[E1]dog";
  const Ids apart = {5, 10, 6};
  EXPECT_EQ(ids_with("tokenizer_config.json", "{}", text), (Ids{5, 7, 1, 9, 6}));
  EXPECT_EQ(ids_with("tokenizer_config.json", R"({"additional_special_tokens":["[E1]"]})", text),
            apart);
  EXPECT_EQ(ids_with("tokenizer_config.json", R"({"extra_special_tokens":["[E1]"]})", text), apart);
  EXPECT_EQ(
      ids_with("tokenizer_config.json", R"({"extra_special_tokens":{"e_token":"[E1]"}})", text),
      apart);
  EXPECT_EQ(ids_with("special_tokens_map.json",
                     R"({"additional_special_tokens":[{"content":"[E1]","lstrip":true}]})", text),
            apart);
  EXPECT_EQ(ids_with("tokenizer.json", R"({"added_tokens":[{"id":10,"content":"[E1]"}]})", text),
            apart);
  EXPECT_EQ(ids_with("added_tokens.json", R"({"[E1]":10})", text), apart);
}

TEST(AddedTokens, ThatNobodyNumbersFollowTheVocabulary) {
  EXPECT_EQ(
      ids_with("tokenizer_config.json",
               R"({"additional_special_tokens":["<x>","<y>"],"mask_token":"<m>"})", "<y><x><m>"),
      (Ids{14, 13, 12}));
}

TEST(AddedTokens, AreFoundInNormalisedTextIfTheyAreNormalised) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder":{"20":{"content":"Cov","normalized":true},
                   "21":{"content":"Fo","normalized":false,"special":false}}})");
  const auto tokenizer = load_tokenizer(folder.path());
  for (const char* text : {"cov fox", "COV fox", "c\u00f3v fox", "co\u0301v fox"})
    EXPECT_EQ(ids_of(*tokenizer, text), (Ids{20, 5})) << text;
  EXPECT_EQ(ids_of(*tokenizer, "Fodog fo"), (Ids{21, 6, 1}));
  const Encoded encoded = tokenizer->encode("fox c\u00f3v", {.special_tokens = false});
  EXPECT_EQ(encoded.bytes[1], (ByteRange{4, 8}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 20, 21, 3}), "fox cov Fo");  // as tokenizers 0.23 does
}

TEST(AddedTokens, OfSingleWordsArePassedOverAsAWhole) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder":{
                   "20":{"content":"<fox>","single_word":true,"normalized":false},
                   "21":{"content":"ox>","normalized":false},"22":{"content":" dog"},
                   "23":{"content":"<r>","rstrip":true}}})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(ids_of(*tokenizer, "-<fox>."), (Ids{1, 20, 1}));
  EXPECT_EQ(ids_of(*tokenizer, "ox>"), (Ids{21}));
  for (const char* letter : {"a", "\u2163", "\u24b6", "\u200d", "_", "\u0301"})
    EXPECT_EQ(ids_of(*tokenizer, std::string("<fox>") + letter).front(), 1) << letter;
  EXPECT_EQ(ids_of(*tokenizer, "<r> dog"), (Ids{23, 22}));
}

TEST(AddedTokens, NullMeansThatThereIsNone) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json", R"({"mask_token":null})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(ids_of(*tokenizer, "[MASK]"), (Ids{7, 8, 9}));
  EXPECT_EQ(tokenizer->special().mask, -1);
}

TEST(AddedTokens, TextsAreCutWhereTheFolderSays) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json", R"({"truncation_side":"left"})");
  const auto tokenizer = load_tokenizer(folder.path());
  const Encoded cut = tokenizer->encode("fox dog mask", {.max_length = 4});
  EXPECT_EQ(cut.ids, (Ids{2, 6, 8, 3}));
  EXPECT_EQ(cut.cut, 1);
}

TEST(AddedTokens, OfATokenizerJsonBesideASentencePieceModel) {
  std::ifstream file(LOCANT_TEST_DATA "/unigram.model", std::ios::binary);
  const TemporaryFolder folder;
  folder.write("spm.model", std::string(std::istreambuf_iterator<char>(file), {}));
  folder.write("tokenizer.json", R"({"added_tokens":[{"id":5000,"content":"<tool>",
      "special":false,"normalized":true}],"model":{"type":"Unigram"}})");
  const auto tokenizer = load_tokenizer(folder.path());
  Ids ids = ids_of(*tokenizer, "a<tool>");
  EXPECT_EQ(ids.back(), 5000);
  for (const int64_t id : ids_of(*tokenizer, " b")) ids.push_back(id);
  EXPECT_TRUE(tokenizer->decode(ids).ends_with("<tool> b")) << tokenizer->decode(ids);
  EXPECT_EQ(tokenizer->piece(4999), "<id 4999>");
}

TEST(AddedTokens, OldTokenizerJsonNamesNeitherItsModelNorATokenizersConfig) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"normalizer":{"type":"BertNormalizer"},
      "pre_tokenizer":{"type":"BertPreTokenizer"},"added_tokens":[],
      "post_processor":{"type":"BertProcessing","sep":["<e>",1],"cls":["<b>",0]},
      "model":{"unk_token":"<u>","continuing_subword_prefix":"##","max_input_chars_per_word":100,
               "vocab":{"<b>":0,"<e>":1,"<u>":2,"fox":3}}})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("fox dog").ids, (Ids{0, 3, 2, 1}));
}

}  // namespace
}  // namespace locant
