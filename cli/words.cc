#include "cli/words.h"

#include <memory>
#include <span>

#include "locant/core/error.h"

namespace locant::cli {

#ifdef LOCANT_WITH_TEXT
Words load_words(const std::string& dir, int64_t max_length) {
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(dir);
  const EncodeOptions options = {.max_length = max_length};
  return {.encode =
              [=](const Passage& passage) {
                return passage.pair ? tokenizer->encode(passage.text, *passage.pair, options)
                                    : tokenizer->encode(passage.text, options);
              },
          .piece = [=](int64_t id) { return tokenizer->piece(id); },
          .decode = [=](std::span<const int64_t> ids) { return tokenizer->decode_output(ids); },
          .mask = tokenizer->special().mask};
}
#else
Words load_words(const std::string& dir, int64_t) {
  fail("tokenizer", dir, ": this locant was built without tokenizers; pass token ids with --ids");
}
#endif

}  // namespace locant::cli
