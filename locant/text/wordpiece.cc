#include "locant/text/wordpiece.h"

#include <algorithm>
#include <array>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/file.h"
#include "locant/text/added_tokens.h"
#include "locant/text/tokenizer_json.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kMostVocabulary = size_t{256} << 20;
constexpr size_t kMostCharacters = 100;
constexpr std::string_view kContinues = "##";

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
}

// A line without the white space at its end.
std::string_view trimmed(std::string_view line) {
  const std::vector<Character> characters = characters_of(line);
  size_t count = characters.size();
  while (count > 0 && is_space(characters[count - 1].code)) --count;
  return line.substr(0, count == 0 ? 0 : characters[count - 1].end);
}

// A piece on each line.
std::vector<std::string> read_vocabulary(const std::string& path) {
  const std::string text = read_file("tokenizer", path, kMostVocabulary);
  require_utf8(path, text);
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    pieces.emplace_back(trimmed(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  require(!pieces.empty(), "tokenizer", path, ": is empty");
  return pieces;
}

TokenNames names_of(WordPieceFamily family) {
  if (family == WordPieceFamily::mpnet)
    return {{"bos_token", "<s>"},    {"eos_token", "</s>"},  {"unk_token", "[UNK]"},
            {"sep_token", "</s>"},   {"pad_token", "<pad>"}, {"cls_token", "<s>"},
            {"mask_token", "<mask>"}};
  return {{"unk_token", "[UNK]"},
          {"sep_token", "[SEP]"},
          {"pad_token", "[PAD]"},
          {"cls_token", "[CLS]"},
          {"mask_token", "[MASK]"}};
}

}  // namespace

WordPiece::WordPiece(const std::string& dir, WordPieceFamily family) {
  const bool mpnet = family == WordPieceFamily::mpnet;
  const Config config = tokenizer_config(dir);
  const std::string lines = join_path(dir, "vocab.txt");
  WordPieceFile file = is_file(lines) ? WordPieceFile{.pieces = read_vocabulary(lines),
                                                      .added = listed_tokens(dir, config),
                                                      .names = {}}
                                      : read_wordpiece_json(dir, mpnet);
  lower_case_ = config.flag_or("do_lower_case", file.lower_case);
  strip_accents_ = config.flag_or(
      "strip_accents", lower_case_ == file.lower_case ? file.strip_accents : lower_case_);
  split_chinese_ = config.flag_or("tokenize_chinese_chars", file.split_chinese);
  require(config.flag_or("do_basic_tokenize", true), "tokenizer", dir,
          ": do_basic_tokenize = false is not supported");
  set_vocabulary(std::move(file.pieces));

  TokenNames names = std::move(file.names);
  names.merge(names_of(family));
  set_special_tokens(dir, file.added, names);
  cut_left_ = cuts_at_the_left(config, file.cut_left);
  frame_ = {{special_.cls}, {special_.sep}, {}, {special_.sep}};
  if (mpnet) frame_.before_pair = {special_.sep};
}

void WordPiece::set_special_tokens(const std::string& dir, const std::vector<Config>& listed,
                                   const TokenNames& names) {
  const auto find = [&](const std::string& token) {
    const auto found = begins_.find(token);
    return found == begins_.end() ? int64_t{-1} : found->second;
  };
  special_ = read_special_tokens(dir, listed, vocabulary_size(), names, find);
  require(special_.unk >= 0 && special_.cls >= 0 && special_.sep >= 0, "tokenizer", dir,
          ": unk_token, cls_token and sep_token must not be null");
  index_added_tokens();
  require(special_.unk < vocabulary_size(), "tokenizer", dir, ": the vocabulary has no token ",
          piece(special_.unk), " for unknown words");

  std::vector<TokenFinder::Pattern> patterns;
  for (const AddedToken& token : special_.added) {
    if (!token.normalized) continue;
    TokenFinder::Pattern pattern{.text = {}, .token = &token};
    for (const Character& character : normalized(token.content, 0))
      append_utf8(character.code, pattern.text);
    require(!pattern.text.empty(), "tokenizer", dir, ": nothing is left of the added token ",
            shown(token.content), " when it is normalised: not supported");
    normalized_contents_.emplace(token.id, pattern.text);
    patterns.push_back(std::move(pattern));
  }
  // Of tokens that become equal a special one counts, else that with the least id. Hugging Face's
  // choice differs from one load to the next.
  std::stable_partition(patterns.begin(), patterns.end(),
                        [](const TokenFinder::Pattern& x) { return x.token->special; });
  normalized_tokens_ = TokenFinder(std::move(patterns));
}

void WordPiece::set_vocabulary(std::vector<std::string> pieces) {
  pieces_ = std::move(pieces);
  // Of equal lines the last counts.
  for (size_t n = 0; n < pieces_.size(); ++n) {
    const std::string_view piece = pieces_[n];
    begins_[piece] = static_cast<int64_t>(n);
    if (piece.starts_with(kContinues))
      continues_[piece.substr(kContinues.size())] = static_cast<int64_t>(n);
    longest_ = std::max(longest_, piece.size());
  }
}

std::vector<Character> WordPiece::normalized(std::string_view text, size_t offset) const {
  std::vector<Character> out;
  for (const Character& character : characters_of(text, offset)) {
    const int32_t code = character.code;
    if (code == 0 || code == 0xfffd || is_control(code)) continue;
    const Character space = {' ', character.begin, character.end};
    if (is_space(code)) {
      out.push_back(space);
    } else if (split_chinese_ && is_chinese(code)) {
      out.insert(out.end(), {space, character, space});
    } else {
      out.push_back(character);
    }
  }
  if (strip_accents_) {
    out = decomposed(out);
    std::erase_if(out, [](const Character& x) { return is_accent(x.code); });
  }
  if (!lower_case_) return out;
  std::vector<Character> lower;
  lower.reserve(out.size());
  for (const Character& character : out) append_lower_case(character, lower);
  return lower;
}

void WordPiece::append_tokens(std::string_view text, size_t offset, std::vector<Token>& out) const {
  const std::vector<Character> characters = normalized(text, offset);
  const Word all(characters);
  if (normalized_tokens_.empty()) {
    append_words(all, out);
    return;
  }
  std::string bytes;
  std::vector<size_t> numbers;  // of the characters that bytes belong to
  for (size_t n = 0; n < all.size(); ++n) {
    append_utf8(all[n].code, bytes);
    numbers.resize(bytes.size(), n);
  }
  numbers.push_back(all.size());
  for (const Segment& segment : normalized_tokens_.split(bytes)) {
    const size_t begin = numbers[segment.bytes.begin], end = numbers[segment.bytes.end];
    const Word part = all.subspan(begin, end - begin);
    if (segment.token == nullptr) {
      append_words(part, out);
    } else {
      out.push_back({segment.token->id, {part.front().begin, part.back().end}});
    }
  }
}

void WordPiece::append_words(Word words, std::vector<Token>& out) const {
  size_t begin = 0;  // of the word that is being read
  for (size_t at = 0; at <= words.size(); ++at) {
    const bool punctuation = at < words.size() && is_punctuation(words[at].code);
    if (at < words.size() && !punctuation && !is_space(words[at].code)) continue;
    if (at > begin) append_word(words.subspan(begin, at - begin), out);
    if (punctuation) append_word(words.subspan(at, 1), out);
    begin = at + 1;
  }
}

void WordPiece::append_word(Word word, std::vector<Token>& out) const {
  const Token unknown = {special_.unk, {word.front().begin, word.back().end}};
  if (word.size() > kMostCharacters) {
    out.push_back(unknown);
    return;
  }
  std::string text;
  std::array<size_t, kMostCharacters + 1> ends = {};  // ends[n]: bytes of the first n characters
  for (size_t n = 0; n < word.size(); ++n) {
    append_utf8(word[n].code, text);
    ends[n + 1] = text.size();
  }
  const size_t before = out.size();
  for (size_t begin = 0; begin < word.size();) {
    const auto& pieces = begin == 0 ? begins_ : continues_;
    size_t end = word.size();
    auto found = pieces.end();
    for (; end > begin && found == pieces.end(); --end)
      if (ends[end] - ends[begin] <= longest_)
        found = pieces.find(std::string_view(text).substr(ends[begin], ends[end] - ends[begin]));
    if (found == pieces.end()) {
      out.resize(before);
      out.push_back(unknown);
      return;
    }
    ++end;  // the loop stepped once beyond what it found
    out.push_back({found->second, {word[begin].begin, word[end - 1].end}});
    begin = end;
  }
}

std::string WordPiece::decode_run(std::span<const int64_t> ids) const {
  std::string out;
  for (const int64_t id : ids) {
    const auto found = normalized_contents_.find(id);
    std::string piece = found == normalized_contents_.end() ? this->piece(id) : found->second;
    if (out.empty()) {
      out = piece;
    } else if (piece.starts_with(kContinues)) {
      out += piece.substr(kContinues.size());
    } else {
      // English punctuation and short forms close up, token by token.
      piece.insert(0, 1, ' ');
      for (const char* mark : {".", "?", "!", ","})
        replace_all(piece, ' ' + std::string(mark), mark);
      out += piece;
    }
  }
  return out;
}

}  // namespace locant::inline v0
