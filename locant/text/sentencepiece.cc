#include "locant/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/text/added_tokens.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kMostModel = size_t{256} << 20;

}  // namespace

SentencePiece::SentencePiece(const std::string& dir)
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  const Config config = tokenizer_config(dir);
  for (const char* key : {"do_lower_case", "split_by_punct"})
    if (config.flag_or(key, false))
      config.reject(key, "is true: not supported; make ids with Python's tokenizers");
  const std::string path = join_path(dir, "spm.model");
  const std::string model = read_file("tokenizer", path, kMostModel);
  const sentencepiece::util::Status status = processor_->LoadFromSerializedProto(model);
  require(status.ok() && processor_->GetPieceSize() > 0, "tokenizer", path,
          ": is no SentencePiece model: ", shown(status.ToString()));

  const auto find = [&](const std::string& token) {
    const int id = processor_->PieceToId(token);  // the unknown one for what is not there
    return processor_->IdToPiece(id) == token ? int64_t{id} : int64_t{-1};
  };
  special_ = read_special_tokens(dir, vocabulary_size(),
                                 {{"bos_token", "[CLS]"},
                                  {"eos_token", "[SEP]"},
                                  {"unk_token", "[UNK]"},
                                  {"sep_token", "[SEP]"},
                                  {"pad_token", "[PAD]"},
                                  {"cls_token", "[CLS]"},
                                  {"mask_token", "[MASK]"}},
                                 find, [](const std::string&) { return true; });
}

SentencePiece::~SentencePiece() = default;

int64_t SentencePiece::vocabulary_size() const {
  return processor_->GetPieceSize();
}

std::string SentencePiece::vocabulary_piece(int64_t id) const {
  return processor_->IdToPiece(static_cast<int>(id));
}

void SentencePiece::append_tokens(std::string_view text, size_t offset,
                                  std::vector<Token>& out) const {
  sentencepiece::ImmutableSentencePieceText pieces;
  const sentencepiece::util::Status status = processor_->Encode(text, pieces.mutable_proto());
  require(status.ok(), "tokenizer", "SentencePiece: ", shown(status.ToString()));
  for (size_t n = 0; n < pieces.pieces_size(); ++n) {
    const auto piece = pieces.pieces(static_cast<int>(n));
    size_t begin = piece.begin();
    const std::string_view surface = text.substr(begin, piece.end() - begin);
    for (const Character& character : characters_of(surface)) {
      if (!is_space(character.code)) break;
      begin = piece.begin() + character.end;
    }
    out.push_back({int64_t{piece.id()}, {offset + begin, offset + piece.end()}});
  }
}

std::string SentencePiece::decode_run(std::span<const int64_t> ids) const {
  const std::vector<int> numbers(ids.begin(), ids.end());
  std::string out;
  const sentencepiece::util::Status status = processor_->Decode(numbers, &out);
  require(status.ok(), "tokenizer", "SentencePiece: ", shown(status.ToString()));
  return out;
}

}  // namespace locant::inline v0
