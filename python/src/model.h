// Checkpoints: locant.load.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_model(nanobind::module_& module);

}  // namespace locant::python
