// Encodings that are added to the input, for Python; the GIL is released while they compute.
#pragma once

#include <cstdint>

#include "arrays.h"
#include "locant/encodings/embed.h"

namespace locant::python {

// start, positions and pads of one call, kept alive.
struct EmbedArguments {
  InputArray positions, pads;
  EmbedOptions options;

  EmbedArguments(int64_t start, nb::handle positions_in, nb::handle pads_in);
};

void bind_embed(nb::module_& module);

}  // namespace locant::python
