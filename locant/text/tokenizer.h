// Text to the token ids of a model, and back.
//   const auto tokenizer = load_tokenizer("deberta-v3-base");
//   const Encoded encoded = tokenizer->encode("How old are you?", "Six.");
//   ids              [CLS] question [SEP] answer [SEP]
//   token_type_ids     0      0       0     1     1
// Texts are UTF-8; anything else is an error that names the byte. Special tokens that are written
// out in a text ("[SEP]") become the token, as Hugging Face's tokenizers do it. Nothing is cut
// unless max_length asks for it. A tokenizer may be used by any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locant/core/api.h"

namespace locant::inline v0 {

// Bytes [begin, end) of the text or, where token_type_ids is 1, of the pair.
struct ByteRange {
  size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

struct Token {
  int64_t id = 0;
  ByteRange bytes;  // without the space that a word of SentencePiece begins with
};

struct Encoded {
  std::vector<int64_t> ids;
  std::vector<int64_t> token_type_ids;
  std::vector<ByteRange> bytes;  // empty for tokens that no text stands for: [CLS], <s>
  int64_t cut = 0;               // tokens of the texts that max_length left out
};

struct EncodeOptions {
  // Most tokens of the result, special ones included; 0: no limit. Of a pair, the longer text is
  // cut first: at its end, or at its beginning if the folder's truncation_side is left.
  int64_t max_length = 0;
  bool special_tokens = true;  // those around texts: [CLS] and [SEP], <s>, </s>
};

// A token that is found in the text before the tokenizer proper sees it.
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool special = true;                           // left out by decode()
  bool left_strip = false, right_strip = false;  // swallows white space beside it
  bool single_word = false;                      // not in the middle of a word
  bool normalized = false;  // looked for in the text as the tokenizer changed it: lower case
};

// What a tokenizer's files say about added tokens; -1: the model has no such token.
struct SpecialTokens {
  std::vector<AddedToken> added;
  int64_t cls = -1, sep = -1, pad = -1, unk = -1, mask = -1, bos = -1, eos = -1;
};

class LOCANT_API Tokenizer {
 public:
  virtual ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  Encoded encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoded encode(std::string_view text, std::string_view pair,
                 const EncodeOptions& options = {}) const;

  // Text again, as near as the tokens allow: special tokens are left out.
  std::string decode(std::span<const int64_t> ids) const;

  // The same of what a model generated, whose table of words may have more rows than there are
  // words: ids from size() on are left out.
  std::string decode_output(std::span<const int64_t> ids) const;

  // The vocabulary's word for an id: "##ing", "▁the", "[MASK]". Tables of models have more rows
  // than there are words: one without is "<id 128050>".
  std::string piece(int64_t id) const;

  // Ids are 0 to size() - 1.
  int64_t size() const;

  const SpecialTokens& special() const { return special_; }
  virtual const char* name() const = 0;  // "wordpiece" or "sentencepiece"

 protected:
  Tokenizer();

  // Tokens of a stretch of text without added tokens that begins at byte `offset`.
  virtual void append_tokens(std::string_view text, size_t offset,
                             std::vector<Token>& out) const = 0;
  // Of ids below vocabulary_size() that are no added tokens.
  virtual std::string vocabulary_piece(int64_t id) const = 0;
  // Of ids of the vocabulary and of added tokens.
  virtual std::string decode_run(std::span<const int64_t> ids) const = 0;
  virtual int64_t vocabulary_size() const = 0;

  // Tokens around a text, and around a second one.
  struct Frame {
    std::vector<int64_t> before, after, before_pair, after_pair;
    size_t around(bool pair) const {
      return before.size() + after.size() + (pair ? before_pair.size() + after_pair.size() : 0);
    }
  };

  // To be called when special_ is complete, and before any text is read.
  void index_added_tokens();
  const AddedToken* added_token(int64_t id) const;  // null if it is none

  SpecialTokens special_;
  Frame frame_;
  bool cut_left_ = false;

 private:
  struct Index;  // added tokens by id, and those that are looked for in a text as it is
  std::vector<Token> tokens_of(const char* what, std::string_view text) const;
  Encoded assemble(std::vector<Token> first, std::optional<std::vector<Token>> second,
                   const EncodeOptions& options) const;

  std::unique_ptr<const Index> index_;
};

// The tokenizer of a model's folder: WordPiece from vocab.txt or tokenizer.json (BERT, MPNet),
// SentencePiece from spm.model (DeBERTa v2 and v3), tokenizer.model (Llama) or spiece.model (T5).
// Others are refused by name: their ids come from Python's tokenizers.
LOCANT_API std::unique_ptr<Tokenizer> load_tokenizer(const std::string& dir);

}  // namespace locant::inline v0
