#include "cli/run.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "locant/core/error.h"
#include "locant/kernels/isa.h"

namespace locant::cli {
namespace {

int print_isas() {
  const std::string current = isa();
  for (const std::string& name : available_isas())
    fmt::print("{} {}\n", name == current ? '*' : ' ', name);
  return 0;
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app(
      "locant: position encodings of Transformers, and attention fused with them, on CPUs.",
      "locant");
  app.set_version_flag("--version", "locant " LOCANT_VERSION);
  app.require_subcommand(0, 1);  // none at all prints the help
  app.failure_message([](const CLI::App* all, const CLI::Error& error) {
    std::string command = "locant";
    for (const CLI::App* chosen : all->get_subcommands())
      command.append(" ").append(chosen->get_name());
    return fmt::format("locant: {} (see {} --help)\n", error.what(), command);
  });
  app.footer("Exit code: 0 done, 1 a check failed, 2 wrong arguments.");

  std::vector<std::pair<CLI::App*, Command>> commands;
  const auto add = [&](const char* name, Command command) {
    commands.emplace_back(app.get_subcommand(name), std::move(command));
  };
  add("list", add_list(app));
  add("check", add_check(app));
  add("bench", add_bench(app));
  add("shift", add_shift(app));
  add("show", add_show(app));
  app.add_subcommand("isa",
                     "Instruction sets compiled in and present on this CPU; * is in use.\n"
                     "LOCANT_ISA=name in the environment chooses another.");
  add("isa", print_isas);
  add("info", add_info(app));
  add("run", add_run(app));
#ifdef LOCANT_WITH_TEXT
  add("tokens", add_tokens(app));
#endif

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help and --version come here too, with code 0
  }
  for (const auto& [subcommand, command] : commands)
    if (subcommand->parsed()) return command();
  fmt::print(stderr, "{}", app.help());
  return 2;
}

}  // namespace

int run(int argc, const char* const* argv) {
  try {
    const int code = parse_and_run(argc, argv);
    // What is still in the buffer may not fit on a full disk.
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    require(written, "output", "cannot be written: ", std::strerror(errno));
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "locant: {}\n", error.what());
    return 2;
  }
}

}  // namespace locant::cli
