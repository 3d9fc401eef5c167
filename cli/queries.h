// What `locant run` asks a model: texts, or token ids.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/answers.h"
#include "cli/texts.h"
#include "cli/words.h"
#include "locant/models/model.h"

namespace locant::cli {

struct QueryFlags {
  std::vector<std::string> texts, pairs, ids;
  std::string file, jsonl, ids_file;
  int64_t max_length = 0;
};

// "101,7592,102" of --ids.
std::vector<int64_t> parse_ids(const char* scope, const std::string& text);

// Either texts or ids; texts become tokens when their batch is due.
struct Questions {
  std::vector<Passage> passages;
  ModelInput sequences;
  bool from_text = false;

  size_t size() const { return from_text ? passages.size() : sequences.ids.size(); }
};

// From what the flags name, else texts from the standard input unless that is a terminal.
Questions read_questions(const QueryFlags& flags);

// Question n. Fails by name if it has more tokens than the model takes.
Query query_of(const Questions& questions, size_t n, const Words& words, const ModelInfo& info);

ModelInput input_of(const std::vector<Query>& batch);

}  // namespace locant::cli
