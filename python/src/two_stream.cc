#include "two_stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>

#include "arrays.h"
#include "encoding.h"
#include "locant/encodings/transformer_xl/transformer_xl.h"
#include "locant/encodings/xlnet/xlnet.h"
#include "locant/layers/two_stream.h"

namespace locant::python {
namespace {

constexpr Axes kTensor{4, "(B, H, L, d)"};

void run(nb::handle q_h, nb::handle q_g, nb::handle k, nb::handle v, const BoundEncoding& encoding,
         nb::handle perm_mask, nb::handle input_mask, nb::handle target_mapping,
         nb::handle segments, bool causal, int64_t window_left, std::optional<double> scale,
         std::pair<int64_t, int64_t> tiling, nb::handle out_h, nb::handle out_g) {
  // Destroyed only after the GIL is back: they hold references to Python objects.
  const InputArray content = input_array(q_h, "q_h", kTensor);
  const InputArray query = input_array(q_g, "q_g", kTensor);
  const InputArray keys = input_array(k, "k", kTensor);
  const InputArray values = input_array(v, "v", kTensor);
  const InputArray perm = broadcast_array(perm_mask, "perm_mask", 3);
  const InputArray padding = broadcast_array(input_mask, "input_mask", 2);
  const InputArray mapping = broadcast_array(target_mapping, "target_mapping", 3);
  const InputArray ids = broadcast_array(segments, "segments", 2);
  const OutputArray out_content = output_array(out_h, "out_h", kTensor);
  const OutputArray out_query = output_array(out_g, "out_g", kTensor);
  TwoStreamOptions options;
  options.perm_mask = perm.view;
  options.input_mask = padding.view;
  options.target_mapping = mapping.view;
  options.segments = ids.view;
  options.causal = causal;
  options.window_left = window_left;
  options.scale = scale;
  options.tiling = {.rows = tiling.first, .keys = tiling.second};
  const nb::gil_scoped_release release;
  two_stream({.q_h = content.view, .q_g = query.view, .k = keys.view, .v = values.view},
             encoding.encoding(), options, out_content.view, out_query.view);
}

}  // namespace

void bind_two_stream(nb::module_& module) {
  module.def("two_stream", &run, nb::arg("q_h"), nb::arg("q_g"), nb::arg("k"), nb::arg("v"),
             nb::arg("encoding"), nb::arg("perm_mask").none(), nb::arg("input_mask").none(),
             nb::arg("target_mapping").none(), nb::arg("segments").none(), nb::arg("causal"),
             nb::arg("window_left"), nb::arg("scale").none(), nb::arg("tiling"), nb::arg("out_h"),
             nb::arg("out_g"), "XLNet's two streams into out_h and out_g.");
  module.def("transformer_xl_same_length_window", &TransformerXL::same_length_window,
             nb::arg("q_len"), nb::arg("memory"), nb::arg("mem_len"),
             "How far behind a query may see.");
  module.def("xlnet_same_length_window", &XLNet::same_length_window, nb::arg("memory"),
             "How far behind a query may see.");
}

}  // namespace locant::python
