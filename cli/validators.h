// Options of commands: numbers whose messages people can read, and values that may be repeated.
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

// An option that may be given several times, with one value each, taken as it is: CLI11 would go on
// to what follows, and take a list apart if a value looks like [one,two].
inline CLI::Option* repeated(CLI::Option* option) {
  return option->expected(1)->take_all()->allow_extra_args(false);
}

}  // namespace locant::cli
