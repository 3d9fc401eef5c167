#include "gradients.h"

#include <utility>

#include "embed.h"
#include "encoding.h"
#include "locant/layers/attend_backward.h"
#include "options.h"

namespace locant::python {
namespace {

constexpr Axes kTensor{4, "(B, H, L, d)"};
constexpr Axes kRows{3, "(B, H, L)"};
constexpr Axes kTokens{3, "(B, L, D)"};

nb::dict to_dict(ParameterGradients gradients) {
  nb::dict out;
  for (auto& [name, tensor] : gradients) out[name.c_str()] = numpy_array(std::move(tensor));
  return out;
}

nb::dict run_attend_backward(nb::handle q_in, nb::handle k_in, nb::handle v_in,
                             const BoundEncoding& encoding, const Options& options,
                             nb::handle out_in, nb::handle lse_in, nb::handle dout_in,
                             nb::handle dq_in, nb::handle dk_in, nb::handle dv_in) {
  // Destroyed only after the GIL is back: they hold references to Python objects.
  const InputArray q = input_array(q_in, "q", kTensor);
  const InputArray k = input_array(k_in, "k", kTensor);
  const InputArray v = input_array(v_in, "v", kTensor);
  const InputArray out = input_array(out_in, "out", kTensor);
  const InputArray lse = input_array(lse_in, "lse", kRows);
  const InputArray dout = input_array(dout_in, "dout", kTensor);
  const OutputArray dq = output_array(dq_in, "dq", kTensor);
  const OutputArray dk = output_array(dk_in, "dk", kTensor);
  const OutputArray dv = output_array(dv_in, "dv", kTensor);
  ParameterGradients gradients;
  {
    const nb::gil_scoped_release release;
    gradients = attend_backward(q.view, k.view, v.view, encoding.encoding(), options.get(),
                                {out.view, lse.view}, dout.view, dq.view, dk.view, dv.view);
  }
  return to_dict(std::move(gradients));
}

nb::dict run_embed_backward(const BoundEncoding& encoding, nb::handle dout_in, int64_t start,
                            nb::handle positions, nb::handle pads) {
  const InputArray dout = input_array(dout_in, "dout", kTokens);
  const EmbedArguments arguments(start, positions, pads);
  ParameterGradients gradients;
  {
    const nb::gil_scoped_release release;
    gradients = encoding.encoding().zero_gradients();
    encoding.encoding().embed_pullback(dout.view, arguments.options, gradients);
  }
  return to_dict(std::move(gradients));
}

}  // namespace

void bind_gradients(nb::module_& module) {
  module.def("attend_backward", &run_attend_backward, nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("encoding"), nb::arg("options"), nb::arg("out"), nb::arg("lse").none(),
             nb::arg("dout"), nb::arg("dq"), nb::arg("dk"), nb::arg("dv"),
             "Gradients into dq, dk and dv; returns those of the parameters, by name.");
  module.def("embed_backward", &run_embed_backward, nb::arg("encoding"), nb::arg("dout"),
             nb::arg("start"), nb::arg("positions").none(), nb::arg("pads").none(),
             "The gradients of the parameters of embed, by name.");
}

}  // namespace locant::python
