// attend() and its relatives for Python; the GIL is released while they compute.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_attention(nanobind::module_& module);

}  // namespace locant::python
