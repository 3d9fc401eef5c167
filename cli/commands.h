// The commands of `locant`. Each adds its subcommand; what it does runs after parsing and returns
// the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace locant::cli {

using Command = std::function<int()>;

Command add_list(CLI::App& app);
Command add_check(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_shift(CLI::App& app);
Command add_show(CLI::App& app);
Command add_info(CLI::App& app);
Command add_run(CLI::App& app);
Command add_tokens(CLI::App& app);  // only in builds with locant/text

}  // namespace locant::cli
