// The command line inside the module: `python -m locant`.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_command(nanobind::module_& module);

}  // namespace locant::python
