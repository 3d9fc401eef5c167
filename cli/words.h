// A folder's tokenizer, as functions: who uses it need not link it, and some builds go without.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/texts.h"
#include "locant/text/text_stream.h"
#include "locant/text/tokenizer.h"

namespace locant::cli {

struct Words {
  std::function<Encoded(const Passage&)> encode;
  std::function<std::string(int64_t id)> piece;
  TextStream::Decode decode;  // of what a model generated
  int64_t mask = -1;  // the id of [MASK]
};

// max_length 0: nothing is cut.
Words load_words(const std::string& dir, int64_t max_length);

}  // namespace locant::cli
