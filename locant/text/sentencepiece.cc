#include "locant/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/text/added_tokens.h"
#include "locant/text/sentencepiece_model.h"
#include "locant/text/tokenizer_json.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kMostModel = size_t{256} << 20;
// SentencePiece joins unknown neighbours to one piece, and copies it for each: a second for
// 100,000.
constexpr size_t kMostUnknown = 65536;

constexpr std::string_view kSpace = "▁";

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

// An added token as text: its ▁ are spaces, and the one that a text begins with is not the text's.
std::string with_spaces(std::string_view content, bool first) {
  if (first && content.starts_with(kSpace)) content.remove_prefix(kSpace.size());
  std::string out;
  for (size_t at = 0; at < content.size();) {
    const bool space = content.substr(at).starts_with(kSpace);
    out += space ? ' ' : content[at];
    at += space ? kSpace.size() : 1;
  }
  return out;
}

// normalizer_spec.add_dummy_prefix = false as a message of its own: behind a model's bytes it is
// merged with what they say.
constexpr std::string_view kNoPrefix("\x1a\x02\x18\x00", 4);

std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_from(const std::string& path,
                                                                      const std::string& model) {
  auto out = std::make_unique<sentencepiece::SentencePieceProcessor>();
  require_ok(path + ": is no SentencePiece model: ",
             [&] { return out->LoadFromSerializedProto(model); });
  require(out->GetPieceSize() > 0, "tokenizer", path, ": has no pieces");
  return out;
}

TokenNames names_of(SentencePieceFamily family) {
  switch (family) {
    case SentencePieceFamily::deberta:
      return {{"bos_token", "[CLS]"},  {"eos_token", "[SEP]"}, {"unk_token", "[UNK]"},
              {"sep_token", "[SEP]"},  {"pad_token", "[PAD]"}, {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}};
    case SentencePieceFamily::llama:
      return {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
    case SentencePieceFamily::t5:
      break;
  }
  return {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
}

}  // namespace

SentencePiece::SentencePiece(const std::string& dir, const char* file, SentencePieceFamily family)
    : family_(family) {
  const Config config = tokenizer_config(dir);
  for (const char* key : {"do_lower_case", "split_by_punct"})
    if (config.flag_or(key, false))
      config.reject(key, "is true: not supported; make ids with Python's tokenizers");
  const std::string path = join_path(dir, file);
  std::string model = read_file("tokenizer", path, kMostModel);
  check_sentencepiece_model(path, model);
  const bool prefix =
      family != SentencePieceFamily::llama || config.flag_or("add_prefix_space", true);
  if (!prefix) model += kNoPrefix;
  processor_ = processor_from(path, model);
  // `legacy`, of Llama and T5: a space goes before every stretch, not before a text alone.
  const bool always = family == SentencePieceFamily::deberta ||
                      config.flag_or("legacy", family == SentencePieceFamily::t5);
  if (!always) continuing_ = processor_from(path, model.append(kNoPrefix));
  note_characters(path);
  set_special_tokens(dir, config);
  set_frame(dir, config);
  cut_left_ = cuts_at_the_left(config);
}

SentencePiece::~SentencePiece() = default;

void SentencePiece::set_special_tokens(const std::string& dir, const Config& config) {
  // T5's <extra_id_0>, the last id, <extra_id_1>, ...: behind the vocabulary, unless files number
  // them.
  const int64_t sentinels =
      family_ == SentencePieceFamily::t5 ? config.integer_or("extra_ids", 100, 0, 1 << 16) : 0;
  std::unordered_map<std::string, int64_t> numbers;
  for (int64_t n = 0; n < sentinels; ++n)
    numbers["<extra_id_" + std::to_string(n) + ">"] = vocabulary_size() + sentinels - 1 - n;
  const auto find = [&](const std::string& token) {
    const int id = processor_->PieceToId(token);  // the unknown one for what is not there
    if (processor_->IdToPiece(id) == token) return int64_t{id};
    const auto sentinel = numbers.find(token);
    return sentinel == numbers.end() ? int64_t{-1} : sentinel->second;
  };
  special_ = read_special_tokens(dir, listed_tokens(dir, config), vocabulary_size() + sentinels,
                                 names_of(family_), find);
  for (AddedToken& token : special_.added) {
    numbers.erase(token.content);
    // The Python classes, which run SentencePiece, look for all in the text as it is.
    token.normalized = false;
  }
  for (const auto& [content, id] : numbers)
    special_.added.push_back({.content = content, .id = id});
  index_added_tokens();
}

void SentencePiece::set_frame(const std::string& dir, const Config& config) {
  const bool llama = family_ == SentencePieceFamily::llama;
  const auto tokens = [&](bool given, const char* name, int64_t id) {
    require(!given || id >= 0, "tokenizer", dir, ": ", name,
            " is null, but the model's texts begin or end with it");
    return given ? std::vector<int64_t>{id} : std::vector<int64_t>();
  };
  if (family_ == SentencePieceFamily::deberta) {
    const auto sep = tokens(true, "sep_token", special_.sep);
    frame_ = {tokens(true, "cls_token", special_.cls), sep, {}, sep};
    return;
  }
  const bool begins = llama && config.flag_or("add_bos_token", true);
  const bool ends = !llama || config.flag_or("add_eos_token", false);
  const auto before = tokens(begins, "bos_token", special_.bos);
  const auto after = tokens(ends, "eos_token", special_.eos);
  frame_ = {before, after, before, after};
}

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

const sentencepiece::SentencePieceProcessor& SentencePiece::processor_of(std::string_view text,
                                                                         size_t offset) const {
  if (offset == 0 || !continuing_) return *processor_;
  // T5's own normalisation takes spaces away at a stretch's beginning: there it needs the prefix.
  const bool spaced = family_ == SentencePieceFamily::t5 && text.starts_with(' ');
  return spaced ? *processor_ : *continuing_;
}

void SentencePiece::append_tokens(std::string_view text, size_t offset,
                                  std::vector<Token>& out) const {
  require_short_unknown_runs(text, offset);
  sentencepiece::ImmutableSentencePieceText pieces;
  const sentencepiece::SentencePieceProcessor& processor = processor_of(text, offset);
  require_ok("SentencePiece: ", [&] { return processor.Encode(text, pieces.mutable_proto()); });
  for (size_t n = 0; n < pieces.pieces_size(); ++n) {
    const auto piece = pieces.pieces(static_cast<int>(n));
    size_t begin = piece.begin();
    const std::string_view surface = text.substr(begin, piece.end() - begin);
    for (const Character& character : characters_of(surface)) {
      if (!is_space(character.code)) break;
      begin = piece.begin() + character.end;
    }
    // Nothing but white space, which a model of programs was trained on.
    if (begin == piece.end() && family_ == SentencePieceFamily::llama) begin = piece.begin();
    out.push_back({int64_t{piece.id()}, {offset + begin, offset + piece.end()}});
  }
}

std::string SentencePiece::decode_run(std::span<const int64_t> ids) const {
  std::string out;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin;
    while (end < ids.size() && added_token(ids[end]) == nullptr) ++end;
    if (end > begin) out += decode_stretch(ids.subspan(begin, end - begin), begin == 0);
    if (end < ids.size()) out += with_spaces(added_token(ids[end])->content, end == 0);
    begin = end + 1;
  }
  return out;
}

std::string SentencePiece::decode_stretch(std::span<const int64_t> ids, bool first) const {
  const std::vector<int> numbers(ids.begin(), ids.end());
  std::string out;
  require_ok("SentencePiece: ", [&] { return processor_->Decode(numbers, &out); });
  if (first) return out;
  // SentencePiece takes the space away that it put before a text: behind a token it is a space.
  size_t spaces = 0;
  for (const int64_t id : ids) {
    std::string_view piece = processor_->IdToPiece(static_cast<int>(id));
    for (; piece.starts_with(kSpace); ++spaces) piece.remove_prefix(kSpace.size());
    if (!piece.empty()) break;
  }
  const size_t there = std::min(out.find_first_not_of(' '), out.size());
  return spaces > there ? out.insert(0, spaces - there, ' ') : out;
}

}  // namespace locant::inline v0
