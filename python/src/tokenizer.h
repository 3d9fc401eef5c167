// Tokenizers of model folders; only in builds with locant/text.
#pragma once

#include <nanobind/nanobind.h>

namespace locant::python {

void bind_tokenizer(nanobind::module_& module);

}  // namespace locant::python
