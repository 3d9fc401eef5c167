// BERT's tokenizer, and MPNet's. Text is cleaned, ideographs become words of their own, accents go
// and case falls (if the folder says so); words are cut at white space and punctuation. A word is
// then read greedily: the longest piece of the vocabulary that it begins with, then the longest
// "##piece" that follows. A word that cannot be read to its end, or has more than 100 characters,
// is [UNK].
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "locant/text/added_tokens.h"
#include "locant/text/token_finder.h"
#include "locant/text/tokenizer.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {

// Whose special tokens: [CLS] A [SEP] B [SEP], or <s> A </s> </s> B </s>.
enum class WordPieceFamily : uint8_t { bert, mpnet };

class WordPiece final : public Tokenizer {
 public:
  // vocab.txt, or tokenizer.json if there is none, which may list added tokens besides; and of
  // tokenizer_config.json do_lower_case, strip_accents, tokenize_chinese_chars.
  WordPiece(const std::string& dir, WordPieceFamily family);

  const char* name() const override { return "wordpiece"; }

 private:
  using Word = std::span<const Character>;

  void append_tokens(std::string_view text, size_t offset, std::vector<Token>& out) const override;
  std::string vocabulary_piece(int64_t id) const override {
    return pieces_[static_cast<size_t>(id)];
  }
  std::string decode_run(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override { return static_cast<int64_t>(pieces_.size()); }

  void set_vocabulary(std::vector<std::string> pieces);
  void set_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                          const TokenNames& names);
  std::vector<Character> normalized(std::string_view text, size_t offset) const;
  void append_words(Word words, std::vector<Token>& out) const;
  void append_word(Word word, std::vector<Token>& out) const;

  bool lower_case_ = true, strip_accents_ = true, split_chinese_ = true;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, int64_t> begins_;     // as they are
  std::unordered_map<std::string_view, int64_t> continues_;  // those with ##, without it
  size_t longest_ = 0;                                       // bytes of the longest piece
  TokenFinder normalized_tokens_;  // added tokens that are looked for in normalised text
  std::unordered_map<int64_t, std::string> normalized_contents_;  // those of these tokens, by id
};

}  // namespace locant::inline v0
