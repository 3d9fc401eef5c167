// Where added tokens stand in a text.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "locant/text/tokenizer.h"

namespace locant::inline v0 {

// A stretch of text, or a token in it.
struct Segment {
  ByteRange bytes;
  const AddedToken* token = nullptr;  // null: text
};

// Cuts texts at tokens: leftmost first, the longest of those that begin there. A token that must be
// a single word and is not is passed over as a whole: none is looked for inside it.
class TokenFinder {
 public:
  struct Pattern {
    std::string text;  // what the token is in a text: not empty
    const AddedToken* token = nullptr;
  };

  TokenFinder() = default;
  explicit TokenFinder(std::vector<Pattern> patterns);  // of equal ones the first counts

  bool empty() const { return patterns_.empty(); }
  std::vector<Segment> split(std::string_view text) const;

 private:
  const Pattern* longest_at(std::string_view text, size_t at) const;

  std::vector<Pattern> patterns_;          // in the order of their bytes
  std::array<size_t, 257> by_first_ = {};  // where those with a first byte begin, and the end
};

}  // namespace locant::inline v0
