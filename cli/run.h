// The whole command line as one function.
#pragma once

namespace locant::cli {

// locant list | check | bench | shift | show | isa | info | run, and tokens in builds with
// locant/text. argv[0] is not looked at; returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace locant::cli
