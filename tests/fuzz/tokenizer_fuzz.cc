// The files of a tokenizer: the first byte chooses between vocab.txt, tokenizer.json, and the
// models of SentencePiece that DeBERTa, Llama and T5 have; then tokenizer_config.json, 0x1e, a
// text, 0x1e, the file.
#include "tests/fuzz/a_text.h"
#include "tests/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const locant::TemporaryFolder folders[5];
  static const char* const files[] = {"vocab.txt", "tokenizer.json", "spm.model", "tokenizer.model",
                                      "spiece.model"};
  locant::fuzz::Bytes bytes(data, size);
  const uint8_t kind = bytes.byte() % 5;
  const locant::TemporaryFolder& folder = folders[kind];
  const std::string_view config = bytes.part(), text = bytes.part();
  folder.write("tokenizer_config.json", config.empty() ? "{}" : config);
  folder.write(files[kind], bytes.rest());
  std::unique_ptr<locant::Tokenizer> tokenizer;
  locant::fuzz::complaint_of([&] { tokenizer = locant::load_tokenizer(folder.path()); });
  if (tokenizer == nullptr) return 0;
  locant::fuzz::encode_and_check(*tokenizer, text);
  locant::fuzz::encode_and_check(*tokenizer, "hello wörld\x01 [MASK] \xe4\xbd\xa0\xe5\xa5\xbd a");
  return 0;
}
