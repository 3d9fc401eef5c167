// Gradients of attention and of embeddings, for Python; the GIL is released while they compute.
#pragma once

#include "arrays.h"

namespace locant::python {

void bind_gradients(nb::module_& module);

}  // namespace locant::python
