// What only locant.Rope can do: rotate tensors outside attention, and show its frequencies.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_rope(nanobind::module_& module);

}  // namespace locant::python
