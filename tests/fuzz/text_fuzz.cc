// Text to ids with good vocabularies; the first byte chooses WordPiece (lower case or not) or
// SentencePiece, the rest is the text, of any bytes.
#include <fstream>
#include <iterator>

#include "tests/fuzz/a_text.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\na\nb\ne\n##a\n##b\n##e\n##s\n!\n.\n你\n##"
    "é\n";

std::string seed_file(const std::string& name) {
  std::ifstream file(LOCANT_FUZZ_DATA "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::unique_ptr<Tokenizer>> tokenizers() {
  std::vector<std::unique_ptr<Tokenizer>> out;
  const TemporaryFolder words, sentences;
  words.write("vocab.txt", kVocabulary);
  out.push_back(load_tokenizer(words.path()));
  words.write("tokenizer_config.json",
              R"({"do_lower_case":false,"added_tokens_decoder":{
                  "20":{"content":"<x>","lstrip":true,"rstrip":true},
                  "21":{"content":"b","single_word":true}}})");
  out.push_back(load_tokenizer(words.path()));
  for (const char* model : {"unigram.model", "bytes.model"}) {
    sentences.write("spm.model", seed_file(model));
    out.push_back(load_tokenizer(sentences.path()));
  }
  return out;
}

}  // namespace
}  // namespace locant

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto all = locant::tokenizers();
  locant::fuzz::Bytes bytes(data, size);
  const auto& tokenizer = *all[bytes.byte() % all.size()];
  locant::fuzz::encode_and_check(tokenizer, bytes.rest());
  return 0;
}
