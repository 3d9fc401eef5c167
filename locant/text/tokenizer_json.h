// tokenizer.json, which Hugging Face's `tokenizers` writes: of the many kinds of tokenizers that it
// can hold, BERT's and MPNet's are read here.
#pragma once

#include <string>
#include <vector>

#include "locant/io/config.h"
#include "locant/text/added_tokens.h"

namespace locant::inline v0 {

struct WordPieceFile {
  std::vector<std::string> pieces;  // by id
  std::vector<Config> added;        // entries of added_tokens
  TokenNames names;                 // what it calls special tokens itself
  bool lower_case = true, split_chinese = true, strip_accents = true;
  bool cut_left = false;  // texts that are too long lose their beginning
};

// What kind of vocabulary the folder's tokenizer.json holds: "WordPiece", "Unigram", "BPE"; empty
// if there is no such file.
std::string tokenizer_json_model(const std::string& dir);

// Entries of the added_tokens of the folder's tokenizer.json, if there is one, where another file
// holds the vocabulary. What transformers 4 saved has them in tokenizer_config.json too, and these
// count then.
std::vector<Config> listed_tokens(const std::string& dir, const Config& config);

// Fails by name on every part that BERT's tokenizer does not have: another normalizer, another way
// of putting [CLS] and [SEP] around texts; `roberta`: theirs must be <s> A </s> </s> B </s>.
WordPieceFile read_wordpiece_json(const std::string& dir, bool roberta);

}  // namespace locant::inline v0
