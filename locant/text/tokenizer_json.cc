#include "locant/text/tokenizer_json.h"

#include <cstdint>
#include <string_view>

#include "locant/core/error.h"
#include "locant/io/file.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kFile = "tokenizer.json";
constexpr const char* kAdvice = "; make ids with Python's tokenizers";

// A vocabulary of 250,000 pieces takes 16 MB.
Config read_json(const std::string& path) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  return Config::parse(read_file("config", path, kMostBytes), path);
}

// Files of the first years do not say which kind of model they hold: its keys do.
std::string kind_of(const Config& model) {
  if (model.has("type")) return model.text("type");
  if (model.has("merges")) return "BPE";
  if (model.has("continuing_subword_prefix") || model.has("max_input_chars_per_word"))
    return "WordPiece";
  return model.is_list("vocab") ? "Unigram" : "WordLevel";
}

void require_type(const Config& file, const char* part, const std::string& type) {
  const std::string got = file.child(part).text("type");
  if (got != type)
    file.reject(part, "is a " + legible(got) + ", but only " + type + " is known" + kAdvice);
}

// "[CLS]:0 A:0 [SEP]:0" of a template's parts.
std::string template_text(const Config& processor, const char* key) {
  std::string out;
  for (const Config& part : processor.children(key)) {
    const Config inner = part.child(part.has("Sequence") ? "Sequence" : "SpecialToken");
    out.append(out.empty() ? "" : " ").append(inner.text("id")).append(":");
    out.append(std::to_string(inner.integer_or("type_id", 0)));
  }
  return out;
}

// [CLS] A [SEP] and [CLS] A [SEP] B [SEP], the second text and its [SEP] of type 1; or, as RoBERTa
// has it, <s> A </s> </s> B </s>. Returns what stands for [CLS] and [SEP].
TokenNames require_template(const Config& file, bool roberta) {
  const Config processor = file.child("post_processor");
  const auto names = [](const std::string& cls, const std::string& sep) {
    return TokenNames{{"cls_token", cls}, {"sep_token", sep}};
  };
  const std::string type = roberta
                               ? processor.choice("type", {"RobertaProcessing"})
                               : processor.choice("type", {"TemplateProcessing", "BertProcessing"});
  if (type != "TemplateProcessing") {
    // "cls": ["[CLS]", 101]
    if (!processor.has("cls") || !processor.has("sep")) return {};
    return names(processor.items("cls").text("0"), processor.items("sep").text("0"));
  }
  constexpr std::string_view kText = ":0 A:0 ", kType = ":0";
  const std::string single = template_text(processor, "single");
  const std::string pair = template_text(processor, "pair");
  const size_t a = single.find(kText);
  std::string sep = a == single.npos ? "" : single.substr(a + kText.size());
  if (sep.size() <= kType.size() || pair != single + " B:1 " + sep.substr(0, sep.size() - 1) + "1")
    file.reject("post_processor",
                "must be [CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1, got " + legible(pair) + kAdvice);
  return names(single.substr(0, a), sep.substr(0, sep.size() - kType.size()));
}

// By id. A vocab.txt with equal lines leaves ids without a piece: "".
std::vector<std::string> pieces_of(const Config& model) {
  constexpr int64_t kMostIds = int64_t{1} << 24;
  const Config vocabulary = model.child("vocab");
  std::vector<std::string> pieces;
  for (const std::string& key : vocabulary.keys()) {
    const auto id = static_cast<size_t>(vocabulary.integer(key, 0, kMostIds - 1));
    if (id >= pieces.size()) pieces.resize(id + 1);
    if (!pieces[id].empty()) vocabulary.reject(key, "has the id of " + shown(pieces[id]));
    pieces[id] = key;
  }
  if (pieces.empty()) model.reject("vocab", "is empty");
  return pieces;
}

}  // namespace

std::string tokenizer_json_model(const std::string& dir) {
  const std::string path = join_path(dir, kFile);
  return is_file(path) ? kind_of(read_json(path).child("model")) : "";
}

std::vector<Config> listed_tokens(const std::string& dir, const Config& config) {
  const std::string path = join_path(dir, kFile);
  if (config.has("added_tokens_decoder") || !is_file(path)) return {};
  const Config file = read_json(path);
  return file.has("added_tokens") ? file.children("added_tokens") : std::vector<Config>();
}

WordPieceFile read_wordpiece_json(const std::string& dir, bool roberta) {
  const Config file = read_json(join_path(dir, kFile));
  const Config model = file.child("model");
  require_type(file, "normalizer", "BertNormalizer");
  require_type(file, "pre_tokenizer", "BertPreTokenizer");
  WordPieceFile out;
  out.names = require_template(file, roberta);
  if (model.has("unk_token")) out.names["unk_token"] = model.text("unk_token");
  model.choice("continuing_subword_prefix", {"##"});
  model.integer("max_input_chars_per_word", 100, 100);
  const Config normalizer = file.child("normalizer");
  if (!normalizer.flag_or("clean_text", true))
    normalizer.reject("clean_text", std::string("must be true") + kAdvice);
  out.pieces = pieces_of(model);
  if (file.has("added_tokens")) out.added = file.children("added_tokens");
  if (file.has("truncation"))
    out.cut_left = file.child("truncation").text_or("direction", "Right") == "Left";
  out.lower_case = normalizer.flag_or("lowercase", true);
  out.strip_accents = normalizer.flag_or("strip_accents", out.lower_case);
  out.split_chinese = normalizer.flag_or("handle_chinese_chars", true);
  return out;
}

}  // namespace locant::inline v0
