// Tokenizers: bad folders and bad texts by their messages. Ids are compared with Hugging Face's in
// python/tests/test_tokenizers.py.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "locant/text/tokenizer.h"
#include "tests/message_of.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

constexpr const char* kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n!\n";

std::string complaint(const TemporaryFolder& folder) {
  const std::string message = message_of([&] { load_tokenizer(folder.path()); });
  const std::string begin = "[tokenizer] " + folder.path();
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

TEST(Tokenizers, WordPieceByHand) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(folder.path());
  const Encoded one = tokenizer->encode("Héllo worlds!");
  EXPECT_EQ(one.ids, (std::vector<int64_t>{2, 5, 6, 7, 8, 3}));
  EXPECT_EQ(one.bytes[1], (ByteRange{0, 6}));  // é has two bytes
  EXPECT_EQ(one.bytes[3], (ByteRange{12, 13}));
  const Encoded two = tokenizer->encode("hello", "[MASK] nothing");
  EXPECT_EQ(two.ids, (std::vector<int64_t>{2, 5, 3, 4, 1, 3}));
  EXPECT_EQ(two.token_type_ids, (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(tokenizer->decode(one.ids), "hello worlds!");
  EXPECT_EQ(tokenizer->special().mask, 4);
}

TEST(Tokenizers, NothingIsCutUnlessAsked) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(folder.path());
  std::string text;
  for (int n = 0; n < 5000; ++n) text += "hello ";
  EXPECT_EQ(tokenizer->encode(text).ids.size(), 5002u);
  const Encoded cut = tokenizer->encode(text, {.max_length = 10});
  EXPECT_EQ(cut.ids.size(), 10u);
  EXPECT_EQ(cut.ids.back(), 3);
  EXPECT_EQ(cut.cut, 4992);
  EXPECT_EQ(message_of([&] { tokenizer->encode(text, text, {.max_length = 2}); }),
            "[tokenizer] max_length must leave room for 3 special tokens, got 2");
}

TEST(Tokenizers, AddedTokensOfTheFolderAreFound) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class":"BertTokenizerFast","added_tokens_decoder":{
                   "9":{"content":"<x>","special":true},
                   "10":{"content":"<xy>","lstrip":true,"rstrip":true},
                   "11":{"content":"word","single_word":true}}})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->size(), 12);
  const EncodeOptions bare = {.special_tokens = false};
  EXPECT_EQ(tokenizer->encode("hello<x>world", bare).ids, (std::vector<int64_t>{5, 9, 6}));
  EXPECT_EQ(tokenizer->encode("hello <xy> <x>", bare).ids, (std::vector<int64_t>{5, 10, 9}));
  EXPECT_EQ(tokenizer->encode("word worlds", bare).ids, (std::vector<int64_t>{11, 6, 7}));
  EXPECT_EQ(tokenizer->piece(11), "word");
}

TEST(BadTexts, NotUtf8) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(folder.path());
  const auto complaint_of = [&](const std::string& text) {
    return message_of([&] { tokenizer->encode(text); });
  };
  EXPECT_EQ(complaint_of("ab\xff"), "[tokenizer] text is not UTF-8 at byte 2");
  EXPECT_EQ(complaint_of("\xc3"), "[tokenizer] text is not UTF-8 at byte 0");
  EXPECT_EQ(complaint_of("a\xc0\x80"), "[tokenizer] text is not UTF-8 at byte 1");      // overlong
  EXPECT_EQ(complaint_of("a\xed\xa0\x80"), "[tokenizer] text is not UTF-8 at byte 1");  // surrogate
  EXPECT_EQ(complaint_of("\xf4\x90\x80\x80"), "[tokenizer] text is not UTF-8 at byte 0");
  EXPECT_EQ(message_of([&] { tokenizer->encode("a", "b\x80"); }),
            "[tokenizer] pair is not UTF-8 at byte 1");
}

TEST(BadTokenIds, AreNamedWithTheirRange) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(message_of([&] { tokenizer->piece(-1); }), "[tokenizer] token id must be >= 0, got -1");
  EXPECT_EQ(tokenizer->piece(9), "<id 9>");  // a row of the model's table that no word has
  EXPECT_EQ(message_of([&] {
              tokenizer->decode(std::vector<int64_t>{0, -1});
            }),
            "[tokenizer] token id must be from 0 to 8, got -1");
}

TEST(BadVocabularies, OfWordPiece) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", "");
  EXPECT_EQ(complaint(folder), "/vocab.txt: is empty");
  folder.write("vocab.txt", "[CLS]\n\xff\n");
  EXPECT_EQ(message_of([&] { load_tokenizer(folder.path()); }),
            "[tokenizer] " + (folder / "vocab.txt") + " is not UTF-8 at byte 6");
  folder.write("vocab.txt", "[CLS]\n[SEP]\nhello\n");
  EXPECT_EQ(complaint(folder), ": the vocabulary has no token [UNK] for unknown words");
  folder.write("vocab.txt", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(complaint(folder),
            "/vocab.txt: is a Git LFS pointer of 43 bytes, not the file itself; run "
            "`git lfs pull` in its folder");
}

// BERT's tokenizer.json; `post` is how texts are put together.
std::string tokenizer_json(const std::string& vocabulary, const std::string& post,
                           const std::string& normalizer = "BertNormalizer") {
  return R"({"added_tokens":[{"id":4,"content":"[MASK]","special":true}],"normalizer":{"type":")" +
         normalizer + R"("},"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":)" + post +
         R"(,"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)" +
         R"("max_input_chars_per_word":100,"vocab":)" + vocabulary + "}}";
}

constexpr const char* kJsonVocabulary =
    R"({"[UNK]":1,"[PAD]":0,"[CLS]":2,"[SEP]":3,"[MASK]":4,"hello":5,"##s":6})";

TEST(Tokenizers, WordPieceFromTokenizerJson) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer_json(kJsonVocabulary, R"({"type":"BertProcessing"})"));
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("Héllos [MASK]").ids, (std::vector<int64_t>{2, 5, 6, 4, 3}));
  EXPECT_EQ(tokenizer->size(), 7);
}

TEST(BadVocabularies, OfTokenizerJson) {
  const TemporaryFolder folder;
  const std::string config = "[config] " + (folder / "tokenizer.json") + ": ";
  const auto with = [&](const std::string& text) {
    folder.write("tokenizer.json", text);
    return message_of([&] { load_tokenizer(folder.path()); });
  };
  const std::string bert = R"({"type":"BertProcessing"})";
  EXPECT_EQ(with("{}"), config + "model is missing; it must be an object");
  EXPECT_EQ(with(tokenizer_json("{}", bert)), config + "model.vocab is empty");
  EXPECT_EQ(with(tokenizer_json(R"({"a":0,"b":-2})", bert)),
            config + "model.vocab.b must be an integer from 0 to 16777215, got -2");
  EXPECT_EQ(with(tokenizer_json(R"({"a":0,"b":0})", bert)),
            config + "model.vocab.b has the id of 'a'");
  EXPECT_EQ(with(tokenizer_json(kJsonVocabulary, bert, "NFC")),
            config +
                "normalizer is a NFC, but only BertNormalizer is known; make ids with Python's "
                "tokenizers");
  EXPECT_EQ(with(tokenizer_json(kJsonVocabulary, R"({"type":"RobertaProcessing"})")),
            config +
                "post_processor.type must be one of TemplateProcessing, BertProcessing, got "
                "'RobertaProcessing'");
  const std::string part = R"({"SpecialToken":{"id":"[CLS]","type_id":0}},)"
                           R"({"Sequence":{"id":"A","type_id":0}},)"
                           R"({"SpecialToken":{"id":"[SEP]","type_id":0}})";
  EXPECT_EQ(with(tokenizer_json(kJsonVocabulary, R"({"type":"TemplateProcessing","single":[)" +
                                                     part + R"(],"pair":[)" + part + "]}")),
            config +
                "post_processor must be [CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1, got [CLS]:0 A:0 [SEP]:0; "
                "make ids with Python's tokenizers");
}

TEST(BadVocabularies, OddLinesAreTokensLikeOthers) {
  const TemporaryFolder folder;
  // Windows' line ends, an empty line, a line twice: the last counts.
  folder.write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\n\r\nhello\r\nhello");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->size(), 8);
  EXPECT_EQ(tokenizer->encode("hello").ids, (std::vector<int64_t>{2, 7, 3}));
}

TEST(BadVocabularies, OfSentencePiece) {
  const TemporaryFolder folder;
  for (const std::string& content : {std::string(), std::string("\xff\xff\xff"),
                                     std::string(100, '\0'), std::string("{\"a\": 1}")}) {
    folder.write("spm.model", content);
    EXPECT_TRUE(complaint(folder).starts_with("/spm.model: is no SentencePiece model: "))
        << complaint(folder);
  }
}

TEST(BadTokenizerFolders, AreRefusedByName) {
  const TemporaryFolder folder;
  const std::string rest =
      ", which is not built in (BERT's vocab.txt or tokenizer.json, DeBERTa's spm.model, Llama's "
      "tokenizer.model and T5's spiece.model are); "
      "make the ids with Python's tokenizers and pass those (locant run --ids)";
  EXPECT_EQ(complaint(folder),
            ": has no vocabulary: neither vocab.txt, tokenizer.json, spm.model, tokenizer.model "
            "nor spiece.model");
  folder.write("tokenizer.json", R"({"model":{"type":"BPE"}})");
  EXPECT_EQ(complaint(folder), ": tokenizer.json holds a BPE model" + rest);
  folder.write("tokenizer.json", R"({"model":{"type":"Unigram"}})");
  EXPECT_EQ(complaint(folder),
            ": tokenizer.json holds a Unigram model, which is not built in; if the model came from "
            "a folder with spm.model or spiece.model, put that file beside it, else make the ids "
            "with Python's "
            "tokenizers and pass those (locant run --ids)");
  const TemporaryFolder unnamed;
  unnamed.write("spiece.model", "");
  EXPECT_EQ(complaint(unnamed),
            ": spiece.model is for a tokenizer_class that no file names" + rest);
  unnamed.write("config.json", R"({"model_type":"xlnet"})");
  EXPECT_EQ(complaint(unnamed), ": spiece.model is for XLNetTokenizer" + rest);
  unnamed.write("config.json", R"({"model_type":"t5"})");
  EXPECT_TRUE(complaint(unnamed).starts_with("/spiece.model: is no SentencePiece model: "));
  folder.write("vocab.json", "{}");
  folder.write("merges.txt", "");
  EXPECT_EQ(complaint(folder), ": vocab.json and merges.txt are a byte-level BPE" + rest);
  folder.write("vocab.txt", kVocabulary);
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"FunnelTokenizer"})");
  EXPECT_EQ(complaint(folder), ": vocab.txt is for FunnelTokenizer" + rest);
  folder.write("spm.model", "");
  EXPECT_EQ(complaint(folder), ": spm.model is for FunnelTokenizer" + rest);
}

TEST(BadTokenizerFolders, SettingsThatAreNotSupported) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const std::string config = "[config] " + (folder / "tokenizer_config.json") + ": ";
  const auto with = [&](const std::string& text) {
    folder.write("tokenizer_config.json", text);
    return message_of([&] { load_tokenizer(folder.path()); });
  };
  EXPECT_EQ(with(R"({"do_lower_case":"yes"})"),
            config + "do_lower_case must be true or false, got 'yes'");
  EXPECT_EQ(with(R"({"added_tokens_decoder":{"x":{"content":"a"}}})"),
            config + "added_tokens_decoder.x is no token id");
  EXPECT_EQ(with(R"({"added_tokens_decoder":{"99999999999":{"content":"a"}}})"),
            config + "added_tokens_decoder.99999999999 is no token id");
  EXPECT_EQ(with(R"({"added_tokens_decoder":{"9":{"content":""}}})"),
            config + "added_tokens_decoder.9.content must not be empty");
  EXPECT_EQ(with("{\"added_tokens_decoder\":{\"9\":{\"content\":\"\u0301\"}}}"),
            "[tokenizer] " + folder.path() +
                ": nothing is left of the added token '\\xcc\\x81' when it is normalised: not "
                "supported");
  EXPECT_EQ(with(R"({"extra_special_tokens":["a",7]})"),
            config + "extra_special_tokens.1 must be an object, got 7");
  EXPECT_EQ(with(R"({"extra_special_tokens":{"a_token":"<a>","b_token":"<b>"}})"),
            config +
                "extra_special_tokens.b_token is not the only token here that no file numbers: not "
                "supported; make ids with Python's tokenizers");
  EXPECT_EQ(
      with(R"({"cls_token":null})"),
      "[tokenizer] " + folder.path() + ": unk_token, cls_token and sep_token must not be null");
  EXPECT_EQ(with(R"({"truncation_side":"top"})"),
            config + "truncation_side must be one of left, right, got 'top'");
  folder.write("spm.model", "");
  EXPECT_EQ(with(R"({"split_by_punct":true})"),
            config + "split_by_punct is true: not supported; make ids with Python's tokenizers");
}

TEST(Tokenizers, ServeManyThreads) {
  const TemporaryFolder folder;
  folder.write("vocab.txt", kVocabulary);
  const auto tokenizer = load_tokenizer(folder.path());
  std::vector<std::vector<int64_t>> ids(4);
  std::vector<std::thread> threads;
  for (auto& own : ids)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) own = tokenizer->encode("hello worlds!").ids;
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : ids) EXPECT_EQ(own, (std::vector<int64_t>{2, 5, 6, 7, 8, 3}));
}

}  // namespace
}  // namespace locant
