// Checks of command-line numbers whose messages people can read.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace locant::cli {

inline CLI::Validator at_least(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) {
        int64_t value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
        return "must be an integer >= " + std::to_string(least) + ", got " + text;
      },
      "");
}

}  // namespace locant::cli
