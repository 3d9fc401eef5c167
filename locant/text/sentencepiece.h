// SentencePiece as the model was trained with it, its own normalisation included, and the special
// tokens of DeBERTa v2 and v3, Llama or T5 around and in it:
//   deberta  [CLS] A [SEP] B [SEP]
//   llama    <s> A <s> B       <s> and </s> as add_bos_token and add_eos_token say
//   t5       A </s> B </s>     and <extra_id_0>, ...
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locant/io/config.h"
#include "locant/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace locant::inline v0 {

enum class SentencePieceFamily : uint8_t { deberta, llama, t5 };

class SentencePiece final : public Tokenizer {
 public:
  // The model `file` in a folder, and the special tokens of its tokenizer_config.json.
  SentencePiece(const std::string& dir, const char* file, SentencePieceFamily family);
  ~SentencePiece() override;

  const char* name() const override { return "sentencepiece"; }

 private:
  void append_tokens(std::string_view text, size_t offset, std::vector<Token>& out) const override;
  std::string vocabulary_piece(int64_t id) const override;
  std::string decode_run(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override;

  void set_special_tokens(const std::string& dir, const Config& config);
  void set_frame(const std::string& dir, const Config& config);
  std::string decode_stretch(std::span<const int64_t> ids, bool first) const;
  void note_characters(const std::string& path);
  void require_short_unknown_runs(std::string_view text, size_t offset) const;

  // Of the stretch of a text that begins at this byte.
  const sentencepiece::SentencePieceProcessor& processor_of(std::string_view text,
                                                            size_t offset) const;

  const SentencePieceFamily family_;
  // The model as it is, which may put a space before what it reads; and one that never does, for
  // stretches behind a special token where these are to be read as they stand, else null.
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_, continuing_;
  std::vector<bool> known_;  // characters that pieces are made of; empty if bytes serve for others
};

}  // namespace locant::inline v0
