// The locant command.
#include <vector>

#include "cli/run.h"

int main(int argc, char** argv) {
  std::vector<locant::cli::MoreCommand> more;
#ifdef LOCANT_WITH_TEXT
  more.emplace_back("tokens", locant::cli::add_tokens);
#endif
  return locant::cli::run(argc, argv, more);
}
