// locant._locant: the C++ library for the Python package, which wraps every function here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "analysis.h"
#include "arrays.h"
#include "attention.h"
#include "command.h"
#include "embed.h"
#include "encoding.h"
#include "gradients.h"
#include "locant/attention/stats.h"
#include "locant/core/executor.h"
#include "locant/core/tensor.h"
#include "locant/kernels/isa.h"
#include "model.h"
#include "openmp.h"
#include "options.h"
#include "rope.h"
#include "tokenizer.h"
#include "two_stream.h"

NB_MODULE(_locant, module) {
  namespace nb = nanobind;
  // Encodings in global variables live until the interpreter ends: that is no leak to warn of.
  nb::set_leak_warnings(false);
  module.attr("__version__") = LOCANT_VERSION;

  locant::python::bind_encoding(module);
  locant::python::bind_options(module);
  locant::python::bind_attention(module);
  locant::python::bind_rope(module);
  locant::python::bind_embed(module);
  locant::python::bind_gradients(module);
  locant::python::bind_analysis(module);
  locant::python::bind_two_stream(module);
  locant::python::bind_model(module);
  locant::python::bind_tokenizer(module);
  locant::python::bind_command(module);
  locant::python::bind_openmp(module);

  module.def("isa", &locant::isa, "The instruction set that the kernels run now.");
  module.def("set_isa", &locant::set_isa, nb::arg("name"),
             "Forces one of available_isas(); \"best\" returns to the default.");
  module.def("available_isas", &locant::available_isas,
             "Instruction sets compiled in and present on this CPU, best first.");
  module.def("num_threads", &locant::num_threads, "How many threads a call may use.");
  module.def("set_num_threads", &locant::set_num_threads, nb::arg("threads"),
             "Sets it, for the whole process; results do not depend on it.");
  module.def(
      "empty",
      [](const std::vector<int64_t>& shape, bool wide) {
        return locant::python::numpy_array(
            locant::Tensor::undefined(wide ? locant::DType::f64 : locant::DType::f32, shape));
      },
      nb::arg("shape"), nb::arg("wide"),
      "An array of float64 (wide) or float32 to be filled, on memory that locant uses again.");
  module.def(
      "stats",
      [] {
        const locant::Stats stats = locant::stats();
        nb::dict out;
        out["fused_calls"] = stats.fused_calls;
        out["fused_tiles"] = stats.fused_tiles;
        out["backward_calls"] = stats.backward_calls;
        out["backward_tiles"] = stats.backward_tiles;
        out["materialized_calls"] = stats.materialized_calls;
        return out;
      },
      "Counts since the process began, by name.");
}
