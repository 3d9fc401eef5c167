#include "command.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/run.h"

namespace locant::python {
namespace {

int run_command(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"locant"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const nanobind::gil_scoped_release release;
  const int code = cli::run(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);  // Python's own standard output is another buffer
  return code;
}

}  // namespace

void bind_command(nanobind::module_& module) {
  module.def("run_command", &run_command, nanobind::arg("arguments"),
             "The locant command with these arguments; prints, and returns the exit code.");
}

}  // namespace locant::python
