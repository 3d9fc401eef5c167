// XLNet's two streams, and the windows of same_length, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_two_stream(nanobind::module_& module);

}  // namespace locant::python
