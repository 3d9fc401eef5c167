// locant run: a checkpoint's answers to token ids.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/run_generate.h"
#include "locant/core/error.h"
#include "locant/core/executor.h"
#include "locant/models/model.h"

namespace locant::cli {
namespace {

using nlohmann::json;

struct RunFlags {
  std::string dir, ids_file, npy;
  std::vector<std::string> ids;
  LoadOptions load;
  GenerateFlags generate;
  int64_t batch = 16;
  int threads = 0;
  bool json = false;
};

std::vector<int64_t> parse_ids(const std::string& text) {
  const json value = json::parse("[" + text + "]", nullptr, false);
  require(value.is_array() && std::all_of(value.begin(), value.end(),
                                          [](const json& x) { return x.is_number_integer(); }),
          "run", "--ids must be integers with commas between them, got '", text, "'");
  return value.get<std::vector<int64_t>>();
}

// A line is [1, 2, 3], or {"ids": [1, 2, 3], "token_types": [0, 0, 1]}.
void read_lines(const std::string& path, ModelInput& input) {
  std::ifstream file;
  if (path != "-") {
    file.open(path);
    require(file.is_open(), "run", path, ": cannot be read");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const json value = json::parse(line);
      const json& ids = value.is_object() ? value.at("ids") : value;
      input.ids.push_back(ids.get<std::vector<int64_t>>());
      auto types = value.is_object() && value.contains("token_types")
                       ? value.at("token_types").get<std::vector<int64_t>>()
                       : std::vector<int64_t>(input.ids.back().size(), 0);
      input.token_types.push_back(std::move(types));
    } catch (const json::exception&) {
      fail("run", path, ": line ", number,
           " must be a list of integers or {\"ids\": [...], \"token_types\": [...]}");
    }
  }
}

ModelInput read_input(const RunFlags& flags) {
  ModelInput input;
  require(flags.ids.empty() != flags.ids_file.empty(), "run",
          "give token ids, either with --ids or with --ids-file");
  for (const std::string& text : flags.ids) input.ids.push_back(parse_ids(text));
  if (!flags.ids_file.empty()) read_lines(flags.ids_file, input);
  require(!input.ids.empty(), "run", flags.ids_file, ": holds no sequences");
  return input;
}

// Sequences [begin, end) of the input.
ModelInput part_of(const ModelInput& input, size_t begin, size_t end) {
  const auto cut = [&](const auto& all) {
    using Rows = std::decay_t<decltype(all)>;
    return all.empty() ? Rows() : Rows(all.begin() + begin, all.begin() + end);
  };
  return {.ids = cut(input.ids), .token_types = cut(input.token_types), .starts = {}};
}

// Results by name, and whether they have a row per token.
struct Result {
  const char* name;
  ConstView values;
  bool per_token;
};

std::vector<Result> results_of(const ModelOutput& out, const ModelInfo& info) {
  std::vector<Result> results;
  const auto add = [&](const char* name, const Tensor& tensor, bool per_token) {
    if (tensor) results.push_back({name, tensor.view(), per_token});
  };
  add("last_hidden_state", out.last_hidden_state, true);
  add("pooler_output", out.pooler_output, false);
  add("logits", out.logits, info.per_token);
  add("start_logits", out.start_logits, true);
  add("end_logits", out.end_logits, true);
  return results;
}

nlohmann::ordered_json row_of(const ConstView& values, int64_t row) {
  if (values.rank == 1) return *values.at<float>(row);
  const float* first = values.at<float>(row);
  return std::vector<float>(first, first + values.shape[1]);
}

// One line of JSON for sequence n of a batch.
void print_json(const ModelOutput& out, const ModelInfo& info, size_t n) {
  nlohmann::ordered_json line;
  for (const Result& result : results_of(out, info)) {
    if (!result.per_token) {
      line[result.name] = row_of(result.values, static_cast<int64_t>(n));
      continue;
    }
    for (int64_t row = out.offsets[n]; row < out.offsets[n + 1]; ++row)
      line[result.name].push_back(row_of(result.values, row));
  }
  fmt::print("{}\n", line.dump());
}

int64_t best_of(const ConstView& logits, int64_t row) {
  const float* first = logits.at<float>(row);
  return std::max_element(first, first + logits.shape[1]) - first;
}

// What the model says about sequence n of a batch, for readers.
void print_answer(const ModelOutput& out, const ModelInfo& info, size_t n, size_t number) {
  const int64_t begin = out.offsets[n], end = out.offsets[n + 1];
  fmt::print("sequence {} ({} tokens): ", number, end - begin);
  if (info.head == "sequence_classification") {
    const ConstView logits = out.logits.view();
    const auto row = static_cast<int64_t>(n);
    const int64_t best = best_of(logits, row);
    fmt::print("{} (logit {:.4f})\n", info.labels[best], *logits.at<float>(row, best));
  } else if (info.head == "question_answering") {
    const auto best = [&](const ConstView& x, int64_t from) {
      return std::max_element(x.at<float>(from), x.at<float>(end - 1) + 1) - x.at<float>(begin);
    };
    const int64_t first = best(out.start_logits.view(), begin);
    fmt::print("answer in tokens {} to {}\n", first, best(out.end_logits.view(), begin + first));
  } else if (info.head == "base") {
    const ConstView h = out.last_hidden_state.view();
    fmt::print("last_hidden_state ({}, {}), first token {:.4f} {:.4f} {:.4f} ...\n", end - begin,
               h.shape[1], *h.at<float>(begin, 0),
               *h.at<float>(begin, std::min<int64_t>(1, h.shape[1] - 1)),
               *h.at<float>(begin, std::min<int64_t>(2, h.shape[1] - 1)));
  } else {
    std::vector<std::string> words;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t best = best_of(out.logits.view(), row);
      words.push_back(info.labels.empty() ? std::to_string(best) : info.labels[best]);
    }
    fmt::print("{}\n", fmt::join(words, " "));
  }
}

int run_model(const RunFlags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  require(flags.batch >= 1, "run", "--batch must be >= 1, got ", flags.batch);
  const ModelInput input = read_input(flags);
  const auto model = load(flags.dir, flags.load);
  const ModelInfo& info = model->info();
  if (flags.generate.count > 0) {
    GenerateFlags generate = flags.generate;
    generate.json = flags.json;
    generate.batch = flags.batch;
    run_generate(*model, input.ids, generate);
    return 0;
  }
  NpyFiles files(flags.npy);
  int64_t tokens = 0;
  double seconds = 0;
  for (size_t begin = 0; begin < input.ids.size(); begin += static_cast<size_t>(flags.batch)) {
    const size_t end = std::min(input.ids.size(), begin + static_cast<size_t>(flags.batch));
    const auto start = std::chrono::steady_clock::now();
    const ModelOutput out = model->run(part_of(input, begin, end));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tokens += out.offsets.back();
    for (size_t n = begin; n < end; ++n) {
      if (flags.json)
        print_json(out, info, n - begin);
      else if (flags.npy.empty())
        print_answer(out, info, n - begin, n);
    }
    if (!flags.npy.empty())
      for (const Result& result : results_of(out, info)) files.append(result.name, result.values);
  }
  files.close();
  fmt::print(stderr, "{} sequences, {} tokens, {:.3f} s, {:.0f} tokens per second\n",
             input.ids.size(), tokens, seconds, static_cast<double>(tokens) / seconds);
  return 0;
}

}  // namespace

Command add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Run a checkpoint (BERT, RoBERTa, DeBERTa, XLNet, Transformer-XL, Llama) on token ids and "
      "print what it says");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("dir", flags->dir, "Folder with config.json and model.safetensors")
      ->required();
  command->add_option("--ids", flags->ids,
                      "Token ids of a sequence, 101,7592,102; may be repeated");
  command->add_option("--ids-file", flags->ids_file,
                      "JSON lines, [101,7592,102] or {\"ids\": [...], \"token_types\": [...]}; "
                      "- is the standard input");
  command->add_option("--head", flags->load.head,
                      "base, masked_lm, sequence_classification, token_classification, "
                      "question_answering or causal_lm; else as config.json says");
  command->add_option("--mask-decoder", flags->load.mask_decoder,
                      "DeBERTa's masked language model: auto, enhanced or plain");
  command->add_option("--batch", flags->batch, "Sequences per call")->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads; else all CPUs");
  command->add_flag("--json", flags->json, "Every result as a line of JSON per sequence");
  command->add_option(
      "--npy", flags->npy,
      "Write results to PREFIX.name.npy, rows of all sequences one after the other");
  add_generate_options(*command, flags->generate);
  return [flags] { return run_model(*flags); };
}

}  // namespace locant::cli
