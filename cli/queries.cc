#include "cli/queries.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "locant/core/error.h"

namespace locant::cli {
namespace {

using nlohmann::json;

bool are_integers(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& x) {
           return x.is_number_integer() && (!x.is_number_unsigned() || x.get<int64_t>() >= 0);
         });
}

// The list under one of two names; null if there is none.
const json* member(const json& line, const char* name, const char* hugging_face) {
  for (const char* key : {name, hugging_face})
    if (line.contains(key)) return &line.at(key);
  return nullptr;
}

// A line is [1, 2, 3], or {"ids": [1, 2, 3], "token_types": [0, 0, 1]}; "input_ids" and
// "token_type_ids" are the same.
void read_ids(const std::string& path, ModelInput& input) {
  for_each_line("run", path, [&](const std::string& line, int64_t number) {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    const json value = json::parse(line, nullptr, false);
    const bool object = value.is_object();
    const json* ids = object ? member(value, "ids", "input_ids") : &value;
    const json* types = object ? member(value, "token_types", "token_type_ids") : nullptr;
    require(ids != nullptr && are_integers(*ids) && (types == nullptr || are_integers(*types)),
            "run", path, ": line ", number,
            " must be a list of integers or {\"ids\": [...], \"token_types\": [...]}");
    input.ids.push_back(ids->get<std::vector<int64_t>>());
    input.token_types.push_back(types != nullptr
                                    ? types->get<std::vector<int64_t>>()
                                    : std::vector<int64_t>(input.ids.back().size(), 0));
  });
}

}  // namespace

std::vector<int64_t> parse_ids(const char* scope, const std::string& text) {
  const bool list = text.starts_with('[');  // as in files
  const json value = json::parse(list ? text : "[" + text + "]", nullptr, false);
  require(are_integers(value), scope, "--ids must be integers with commas between them, got '",
          text, "'");
  return value.get<std::vector<int64_t>>();
}

Questions read_questions(const QueryFlags& flags) {
  const std::string choices = "--text, --file, --jsonl, --ids or --ids-file";
  const int given = !flags.texts.empty() + !flags.file.empty() + !flags.jsonl.empty() +
                    !flags.ids.empty() + !flags.ids_file.empty();
  require(given <= 1, "run", "give only one of ", choices);
  require(flags.pairs.empty() || !flags.texts.empty(), "run", "--pair goes with --text");
  require(given == 1 || isatty(STDIN_FILENO) == 0, "run", "give ", choices,
          ", or texts on the standard input");
  Questions out;
  std::string source = "the standard input";
  if (!flags.ids.empty()) {
    for (const std::string& text : flags.ids) out.sequences.ids.push_back(parse_ids("run", text));
  } else if (!flags.ids_file.empty()) {
    source = flags.ids_file;
    read_ids(flags.ids_file, out.sequences);
  } else {
    out.from_text = true;
    if (!flags.texts.empty()) {
      out.passages = passages_of("run", flags.texts, flags.pairs);
    } else if (!flags.jsonl.empty()) {
      source = flags.jsonl;
      out.passages = read_json_lines("run", flags.jsonl);
    } else {
      if (given == 1) source = flags.file;
      out.passages = read_text_lines("run", given == 1 ? flags.file : "-");
    }
  }
  require(flags.max_length == 0 || out.from_text, "run",
          "--max-length cuts texts; token ids are taken as they are");
  require(out.size() > 0, "run", source, ": holds ", out.from_text ? "no texts" : "no sequences",
          given == 0 ? "; or give " + choices : "");
  return out;
}

Query query_of(const Questions& questions, size_t n, const Words& words, const ModelInfo& info) {
  Query query;
  query.from_text = questions.from_text;
  if (!questions.from_text) {
    query.encoded.ids = questions.sequences.ids[n];
    query.encoded.token_type_ids = questions.sequences.token_types.empty()
                                       ? std::vector<int64_t>(query.encoded.ids.size(), 0)
                                       : questions.sequences.token_types[n];
    return query;
  }
  query.passage = questions.passages[n];
  try {
    query.encoded = words.encode(query.passage);
  } catch (const std::exception& error) {
    fail("run", "text ", n, ": ", error.what());
  }
  const int64_t tokens = std::ssize(query.encoded.ids);
  require(info.max_length == 0 || tokens <= info.max_length, "run", "text ", n, " has ", tokens,
          " tokens but the model takes ", info.max_length, "; --max-length ", info.max_length,
          " cuts what is longer");
  return query;
}

ModelInput input_of(const std::vector<Query>& batch) {
  ModelInput input;
  for (const Query& query : batch) {
    input.ids.push_back(query.encoded.ids);
    input.token_types.push_back(query.encoded.token_type_ids);
  }
  return input;
}

}  // namespace locant::cli
