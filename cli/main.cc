// The locant command.
#include "cli/run.h"

int main(int argc, char** argv) {
  return locant::cli::run(argc, argv);
}
