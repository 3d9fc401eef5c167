// The whole command line as one function.
#pragma once

#include <span>
#include <utility>

#include "cli/commands.h"

namespace locant::cli {

// A command that not every door has: its name, and what adds it.
using MoreCommand = std::pair<const char*, Command (*)(CLI::App&)>;

// locant list | check | bench | shift | show | isa | info | run, and `more`. argv[0] is not looked
// at; returns the exit code.
int run(int argc, const char* const* argv, std::span<const MoreCommand> more = {});

}  // namespace locant::cli
