// The tokenizer of DeBERTa v2 and v3: SentencePiece as the model was trained with it, its own
// normalisation included, and [CLS], [SEP], [MASK] around and in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locant/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace locant::inline v0 {

class SentencePiece final : public Tokenizer {
 public:
  // spm.model, and the special tokens of tokenizer_config.json.
  explicit SentencePiece(const std::string& dir);
  ~SentencePiece() override;

  const char* name() const override { return "sentencepiece"; }

 private:
  void append_tokens(std::string_view text, size_t offset, std::vector<Token>& out) const override;
  std::string vocabulary_piece(int64_t id) const override;
  std::string decode_run(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override;

  void note_characters(const std::string& path);
  void require_short_unknown_runs(std::string_view text, size_t offset) const;

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::vector<bool> known_;  // characters that pieces are made of; empty if bytes serve for others
};

}  // namespace locant::inline v0
