// locant's work on the threads of an OpenMP runtime that is in the process already.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_openmp(nanobind::module_& module);

}  // namespace locant::python
