#include "embed.h"

#include "encoding.h"

namespace locant::python {
namespace {

constexpr Axes kTokens{3, "(B, L, D)"};

using Call = void (Encoding::*)(const ConstView&, const EmbedOptions&, const View&) const;

template <Call call>
void run(const BoundEncoding& encoding, nb::handle x_in, const EmbedArguments& arguments,
         nb::handle out_in) {
  const InputArray x = input_array(x_in, "x", kTokens);
  const OutputArray out = output_array(out_in, "out", kTokens);
  const nb::gil_scoped_release release;
  (encoding.encoding().*call)(x.view, arguments.options, out.view);
}

}  // namespace

EmbedArguments::EmbedArguments(int64_t start, nb::handle positions_in, nb::handle pads_in)
    : positions(broadcast_array(positions_in, "positions", 2)),
      pads(broadcast_array(pads_in, "pads", 2)),
      options{.start = start, .positions = positions.view, .pads = pads.view} {}

void bind_embed(nb::module_& module) {
  nb::class_<EmbedArguments>(module, "EmbedArguments", "Where the tokens of one call stand.")
      .def(nb::init<int64_t, nb::handle, nb::handle>(), nb::arg("start"),
           nb::arg("positions").none(), nb::arg("pads").none());
  module.def("embed", &run<&Encoding::embed>, nb::arg("encoding"), nb::arg("x"),
             nb::arg("arguments"), nb::arg("out"), "Writes x + PE to out.");
  module.def("embed_reference", &run<&Encoding::embed_reference>, nb::arg("encoding"), nb::arg("x"),
             nb::arg("arguments"), nb::arg("out"),
             "Writes x + PE to out, by the paper's formula in float64.");
  module.def(
      "embed_dim", [](const BoundEncoding& bound) { return bound.encoding().embed_dim(); },
      nb::arg("encoding"), "The width of the inputs that it is added to, or 0.");
}

}  // namespace locant::python
