// absolute_scores() and shift_invariance() for Python; the GIL is released while they compute.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_analysis(nanobind::module_& module);

}  // namespace locant::python
