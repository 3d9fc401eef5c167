#include "attention.h"

#include <string>
#include <utility>

#include "arrays.h"
#include "encoding.h"
#include "locant/layers/attend.h"
#include "options.h"

namespace locant::python {
namespace {

constexpr Axes kTensor{4, "(B, H, L, d)"};
constexpr Axes kRows{3, "(B, H, L)"};
constexpr Axes kTalking{2, "(H, H)"};

// The tensors of one call. They hold references to Python objects, so they are destroyed only after
// the GIL is back.
struct Tensors {
  InputArray q, k, v;
  OutputArray out, lse;

  Tensors(nb::handle q_in, nb::handle k_in, nb::handle v_in, nb::handle out_in, nb::handle lse_in)
      : q(input_array(q_in, "q", kTensor)),
        k(input_array(k_in, "k", kTensor)),
        v(input_array(v_in, "v", kTensor)),
        out(output_array(out_in, "out", kTensor)),
        lse(output_array(lse_in, "lse", kRows)) {}
};

using Call = void (*)(const ConstView&, const ConstView&, const ConstView&, const Encoding&,
                      const AttendOptions&, const View&);

template <Call call>
void run(nb::handle q, nb::handle k, nb::handle v, const BoundEncoding& encoding,
         const Options& given, nb::handle out, nb::handle lse) {
  const Tensors tensors(q, k, v, out, lse);
  AttendOptions options = given.get();
  options.lse = tensors.lse.view;
  const nb::gil_scoped_release release;
  call(tensors.q.view, tensors.k.view, tensors.v.view, encoding.encoding(), options,
       tensors.out.view);
}

// Returns (probabilities, {name: scores}), each (B, H, Lq, Lk).
nb::tuple run_materialized(nb::handle q, nb::handle k, nb::handle v, const BoundEncoding& encoding,
                           const Options& given, nb::handle out, nb::handle lse,
                           nb::handle talking_logits, nb::handle talking_probabilities) {
  const Tensors tensors(q, k, v, out, lse);
  const InputArray logits = input_array(talking_logits, "talking_logits", kTalking);
  const InputArray probabilities =
      input_array(talking_probabilities, "talking_probabilities", kTalking);
  AttendOptions options = given.get();
  options.lse = tensors.lse.view;
  Materialized result;
  {
    const nb::gil_scoped_release release;
    result = attend_materialized(
        tensors.q.view, tensors.k.view, tensors.v.view, encoding.encoding(), options,
        {.talking_logits = logits.view, .talking_probabilities = probabilities.view},
        tensors.out.view);
  }
  const int64_t shape[] = {tensors.q.view.shape[0], tensors.q.view.shape[1],
                           tensors.q.view.shape[2], tensors.k.view.shape[2]};
  nb::dict scores;
  for (auto& [name, values] : result.scores)
    scores[name.c_str()] = numpy_array(std::move(values), shape);
  return nb::make_tuple(numpy_array(std::move(result.probabilities), shape), scores);
}

}  // namespace

void bind_attention(nb::module_& module) {
  const auto q = nb::arg("q");
  const auto k = nb::arg("k");
  const auto v = nb::arg("v");
  const auto encoding = nb::arg("encoding");
  const auto options = nb::arg("options");
  const auto out = nb::arg("out");
  const auto lse = nb::arg("lse").none();
  module.def("attend", &run<&attend>, q, k, v, encoding, options, out, lse,
             "Fused attention into out and lse.");
  module.def("attend_reference", &run<&attend_reference>, q, k, v, encoding, options, out, lse,
             "The papers' formulas in plain float64 loops, into out and lse.");
  module.def("attend_materialized", &run_materialized, q, k, v, encoding, options, out, lse,
             nb::arg("talking_logits").none(), nb::arg("talking_probabilities").none(),
             "Returns (probabilities, {term: scores}), each (B, H, Lq, Lk).");
}

}  // namespace locant::python
