// locant run --generate: new tokens after prompts, as they come.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <vector>

#include "locant/models/model.h"
#include "locant/text/text_stream.h"

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

// Prints what the model adds to each prompt: of a batch's first sequence while it comes, of the
// others when the batch is done. With `decode` it is text, behind the prompt's own unless that went
// to an encoder, else numbers. With `json` a line {"ids": ..., "text": ...} each, of what is new.
// Speeds go to the standard error.
void run_generate(const Model& model, const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateFlags& flags, const TextStream::Decode& decode);

}  // namespace locant::cli
