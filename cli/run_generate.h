// locant run --generate: new tokens after prompts, as they come.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "locant/models/model.h"

namespace locant::cli {

struct GenerateFlags {
  int64_t count = 0;  // new tokens of each sequence; 0: --generate was not given
  GenerateOptions options;
  bool never_stop = false;
  bool json = false;
  int64_t batch = 16;  // sequences per call
};

// --generate and the options that need it.
void add_generate_options(CLI::App& command, GenerateFlags& flags);

// Token ids as text; without it they are printed as numbers.
using Decode = std::function<std::string(std::span<const int64_t>)>;

// Prints what the model adds to each prompt: of a batch's first sequence while it comes, of the
// others when the batch is done; with `json` a line {"ids": ..., "text": ...} each. Speeds go to
// the standard error.
void run_generate(const Model& model, const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateFlags& flags, const Decode& decode = {});

}  // namespace locant::cli
