#include "locant/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/text/added_tokens.h"
#include "locant/text/sentencepiece.h"
#include "locant/text/token_finder.h"
#include "locant/text/tokenizer_json.h"
#include "locant/text/unicode.h"
#include "locant/text/wordpiece.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "tokenizer";
constexpr size_t kMostText = size_t{1} << 30;  // SentencePiece counts bytes with 32 bits

// How many tokens of two texts are kept, `most` in all: the shorter one whole if it can be, else
// half each, and an odd one for the longer.
std::pair<size_t, size_t> shares(size_t first, size_t second, size_t most) {
  if (first + second <= most) return {first, second};
  const bool swapped = first > second;
  size_t shorter = std::min(first, second);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = most - shorter;
  }
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

constexpr std::string_view kMPNet = "MPNet";  // WordPiece with RoBERTa's special tokens

// Classes whose vocab.txt is BERT's WordPiece.
constexpr std::array<std::string_view, 6> kWordPieceClasses = {
    "Bert", "DistilBert", "Electra", "MobileBert", "ConvBert", kMPNet};

// A vocabulary of SentencePiece, and the classes whose it may be.
struct SentencePieceFile {
  const char* name;
  SentencePieceFamily family;
  std::vector<std::string_view> classes;
};

const std::array<SentencePieceFile, 3> kSentencePieceFiles = {{
    {"spm.model", SentencePieceFamily::deberta, {"DebertaV2", ""}},
    {"tokenizer.model", SentencePieceFamily::llama, {"Llama"}},
    {"spiece.model", SentencePieceFamily::t5, {"T5", "MT5"}},
}};

// Whose tokenizer a folder holds: "Bert" of BertTokenizerFast and BertTokenizer, as
// tokenizer_config.json says, else by the model; empty if neither tells.
std::string family_of(const std::string& dir) {
  std::string name = tokenizer_config(dir).text_or("tokenizer_class", "");
  for (const std::string_view ending : {"Fast", "Tokenizer"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  const std::string path = join_path(dir, "config.json");
  if (!name.empty() || !is_file(path)) return name;
  static const std::map<std::string, std::string> by_model = {
      {"llama", "Llama"}, {"mistral", "Llama"}, {"phi3", "Llama"},  {"t5", "T5"},
      {"mt5", "T5"},      {"umt5", "T5"},       {"xlnet", "XLNet"}, {"deberta-v2", "DebertaV2"},
      {"mpnet", "MPNet"}};
  const auto found = by_model.find(Config::read(path).text_or("model_type", ""));
  return found == by_model.end() ? "" : found->second;
}

[[noreturn]] void refuse(const std::string& dir, const std::string& what) {
  fail(kScope, dir, ": ", what,
       ", which is not built in (BERT's vocab.txt or tokenizer.json, DeBERTa's spm.model, Llama's "
       "tokenizer.model and T5's spiece.model are); make the ids with Python's tokenizers and pass "
       "those (locant run --ids)");
}

}  // namespace

struct Tokenizer::Index {
  std::unordered_map<int64_t, const AddedToken*> by_id;
  int64_t end = 0;  // behind the largest id
  TokenFinder finder;
};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::index_added_tokens() {
  auto index = std::make_unique<Index>();
  std::vector<TokenFinder::Pattern> patterns;
  for (const AddedToken& token : special_.added) {
    index->by_id.emplace(token.id, &token);
    index->end = std::max(index->end, token.id + 1);
    if (!token.normalized) patterns.push_back({token.content, &token});
  }
  index->finder = TokenFinder(std::move(patterns));
  index_ = std::move(index);
}

const AddedToken* Tokenizer::added_token(int64_t id) const {
  const auto found = index_->by_id.find(id);
  return found == index_->by_id.end() ? nullptr : found->second;
}

std::vector<Token> Tokenizer::tokens_of(const char* what, std::string_view text) const {
  require(text.size() <= kMostText, kScope, what, " has ", text.size(), " bytes, more than ",
          kMostText);
  require_utf8(what, text);
  std::vector<Token> out;
  for (const Segment& segment : index_->finder.split(text)) {
    if (segment.token != nullptr) {
      out.push_back({segment.token->id, segment.bytes});
    } else {
      const size_t begin = segment.bytes.begin;
      append_tokens(text.substr(begin, segment.bytes.end - begin), begin, out);
    }
  }
  return out;
}

Encoded Tokenizer::assemble(std::vector<Token> first, std::optional<std::vector<Token>> second,
                            const EncodeOptions& options) const {
  const size_t around = options.special_tokens ? frame_.around(second.has_value()) : 0;
  const size_t second_size = second ? second->size() : 0;
  Encoded out;
  require(options.max_length >= 0, kScope, "max_length must be >= 0, got ", options.max_length);
  if (options.max_length > 0) {
    const size_t most = static_cast<size_t>(options.max_length);
    require(most >= around, kScope, "max_length must leave room for ", around,
            " special tokens, got ", most);
    const auto [a, b] = shares(first.size(), second_size, most - around);
    out.cut = static_cast<int64_t>(first.size() - a + second_size - b);
    const auto cut = [this](std::vector<Token>& tokens, size_t kept) {
      const auto many = static_cast<std::ptrdiff_t>(tokens.size() - kept);
      const auto begin = cut_left_ ? tokens.begin() : tokens.end() - many;
      tokens.erase(begin, begin + many);
    };
    cut(first, a);
    if (second) cut(*second, b);
  }
  const auto add = [&](const Token& token, int64_t type) {
    out.ids.push_back(token.id);
    out.token_type_ids.push_back(type);
    out.bytes.push_back(token.bytes);
  };
  const auto add_special = [&](const std::vector<int64_t>& ids, int64_t type) {
    if (options.special_tokens)
      for (const int64_t id : ids) add({id, {}}, type);
  };
  add_special(frame_.before, 0);
  for (const Token& token : first) add(token, 0);
  add_special(frame_.after, 0);
  if (!second) return out;
  add_special(frame_.before_pair, 1);
  for (const Token& token : *second) add(token, 1);
  add_special(frame_.after_pair, 1);
  return out;
}

Encoded Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return assemble(tokens_of("text", text), std::nullopt, options);
}

Encoded Tokenizer::encode(std::string_view text, std::string_view pair,
                          const EncodeOptions& options) const {
  return assemble(tokens_of("text", text), tokens_of("pair", pair), options);
}

int64_t Tokenizer::size() const {
  return std::max(vocabulary_size(), index_->end);
}

std::string Tokenizer::piece(int64_t id) const {
  require(id >= 0, kScope, "token id must be >= 0, got ", id);
  if (const AddedToken* token = added_token(id)) return token->content;
  const std::string piece = id < vocabulary_size() ? vocabulary_piece(id) : "";
  return piece.empty() ? "<id " + std::to_string(id) + ">" : piece;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::vector<int64_t> plain;
  for (const int64_t id : ids) {
    require(id >= 0 && id < size(), kScope, "token id must be from 0 to ", size() - 1, ", got ",
            id);
    const AddedToken* token = added_token(id);
    if (token != nullptr ? !token->special : id < vocabulary_size()) plain.push_back(id);
  }
  return decode_run(plain);
}

std::string Tokenizer::decode_output(std::span<const int64_t> ids) const {
  std::vector<int64_t> known(ids.begin(), ids.end());
  std::erase_if(known, [most = size()](int64_t id) { return id >= most; });
  return decode(known);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& dir) {
  require_folder(kScope, dir);
  const auto has = [&](const char* name) { return is_file(join_path(dir, name)); };
  const std::string family = family_of(dir);
  const auto wordpiece = [&] {
    return std::make_unique<WordPiece>(
        dir, family == kMPNet ? WordPieceFamily::mpnet : WordPieceFamily::bert);
  };
  for (const SentencePieceFile& file : kSentencePieceFiles) {
    if (!has(file.name)) continue;
    const bool known =
        std::find(file.classes.begin(), file.classes.end(), family) != file.classes.end();
    if (!known && family.empty())
      refuse(dir, std::string(file.name) + " is for a tokenizer_class that no file names");
    if (!known) refuse(dir, std::string(file.name) + " is for " + legible(family) + "Tokenizer");
    return std::make_unique<SentencePiece>(dir, file.name, file.family);
  }
  if (has("vocab.txt")) {
    if (!family.empty() && std::find(kWordPieceClasses.begin(), kWordPieceClasses.end(), family) ==
                               kWordPieceClasses.end())
      refuse(dir, "vocab.txt is for " + legible(family) + "Tokenizer");
    return wordpiece();
  }
  if (has("vocab.json") && has("merges.txt"))
    refuse(dir, "vocab.json and merges.txt are a byte-level BPE");
  if (has("sentencepiece.bpe.model"))
    refuse(dir, "sentencepiece.bpe.model is the vocabulary of another family");
  const std::string kind = tokenizer_json_model(dir);
  if (kind == "WordPiece") return wordpiece();
  if (kind == "Unigram")
    fail(kScope, dir,
         ": tokenizer.json holds a Unigram model, which is not built in; if the model came from a "
         "folder with spm.model or spiece.model, put that file beside it, else make the ids with "
         "Python's tokenizers and pass those (locant run --ids)");
  if (!kind.empty()) refuse(dir, "tokenizer.json holds a " + legible(kind) + " model");
  fail(kScope, dir,
       ": has no vocabulary: neither vocab.txt, tokenizer.json, spm.model, "
       "tokenizer.model nor spiece.model");
}

}  // namespace locant::inline v0
