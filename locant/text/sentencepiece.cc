#include "locant/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/text/added_tokens.h"
#include "locant/text/sentencepiece_model.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kMostModel = size_t{256} << 20;
// SentencePiece joins unknown neighbours to one piece, and copies it for each: a second for
// 100,000.
constexpr size_t kMostUnknown = 65536;

// The library's answer to `call`, which must be that all is well. `what` begins the message if not.
// It has exceptions of its own too, for vocabularies that its trie cannot hold.
template <class Call>
void require_ok(const std::string& what, const Call& call) {
  std::string reason;
  try {
    const sentencepiece::util::Status status = call();
    if (status.ok()) return;
    reason = status.ToString();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  fail("tokenizer", what, shown(reason));
}

}  // namespace

SentencePiece::SentencePiece(const std::string& dir)
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  const Config config = tokenizer_config(dir);
  for (const char* key : {"do_lower_case", "split_by_punct"})
    if (config.flag_or(key, false))
      config.reject(key, "is true: not supported; make ids with Python's tokenizers");
  const std::string path = join_path(dir, "spm.model");
  const std::string model = read_file("tokenizer", path, kMostModel);
  check_sentencepiece_model(path, model);
  require_ok(path + ": is no SentencePiece model: ",
             [&] { return processor_->LoadFromSerializedProto(model); });
  require(processor_->GetPieceSize() > 0, "tokenizer", path, ": has no pieces");

  note_characters(path);

  const auto find = [&](const std::string& token) {
    const int id = processor_->PieceToId(token);  // the unknown one for what is not there
    return processor_->IdToPiece(id) == token ? int64_t{id} : int64_t{-1};
  };
  special_ = read_special_tokens(dir, {}, vocabulary_size(),
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

void SentencePiece::note_characters(const std::string& path) {
  known_.resize(0x110000);
  bool bytes = false;
  for (int id = 0; id < processor_->GetPieceSize(); ++id) {
    const std::string& piece = processor_->IdToPiece(id);
    require_utf8(path + ": piece " + std::to_string(id), piece);
    for (const Character& character : characters_of(piece))
      known_[static_cast<size_t>(character.code)] = true;
    bytes |= processor_->IsByte(id);
  }
  if (bytes) known_.clear();
}

void SentencePiece::require_short_unknown_runs(std::string_view text, size_t offset) const {
  if (known_.empty() || text.size() <= kMostUnknown) return;
  size_t run = 0;
  for (const Character& character : characters_of(text, offset)) {
    const bool known = known_[static_cast<size_t>(character.code)] || is_space(character.code);
    run = known ? 0 : run + 1;
    require(run <= kMostUnknown, "tokenizer", "text has more than ", kMostUnknown,
            " characters in a row, up to byte ", character.end,
            ", that the vocabulary does not know; put white space between them");
  }
}

int64_t SentencePiece::vocabulary_size() const {
  return processor_->GetPieceSize();
}

std::string SentencePiece::vocabulary_piece(int64_t id) const {
  return processor_->IdToPiece(static_cast<int>(id));
}

void SentencePiece::append_tokens(std::string_view text, size_t offset,
                                  std::vector<Token>& out) const {
  require_short_unknown_runs(text, offset);
  sentencepiece::ImmutableSentencePieceText pieces;
  require_ok("SentencePiece: ", [&] { return processor_->Encode(text, pieces.mutable_proto()); });
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
  require_ok("SentencePiece: ", [&] { return processor_->Decode(numbers, &out); });
  return out;
}

}  // namespace locant::inline v0
