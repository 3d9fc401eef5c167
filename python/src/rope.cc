#include "rope.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "arrays.h"
#include "encoding.h"
#include "locant/encodings/rope/rope.h"

namespace locant::python {
namespace {

const Rope& rope_of(const BoundEncoding& encoding) {
  const Rope* rope = dynamic_cast<const Rope*>(&encoding.encoding());
  require(rope != nullptr, "rope", "the encoding is '", encoding.name(), "', not 'rope'");
  return *rope;
}

Side side_of(const std::string& side) {
  require(side == "q" || side == "k", Rope::kName, "side must be 'q' or 'k', got '", side, "'");
  return side == "q" ? Side::query : Side::key;
}

void rotate(const BoundEncoding& encoding, nb::handle x, nb::handle out, int64_t start,
            nb::handle positions, int64_t length, const std::string& side, int64_t origin,
            bool inverse) {
  constexpr Axes kTensor{4, "(B, H, L, d)"};
  const InputArray from = input_array(x, "x", kTensor);
  const OutputArray to = output_array(out, "out", kTensor);
  const InputArray ids = position_array(positions, "positions");
  const RotateOptions options{.start = start,
                              .positions = ids.view,
                              .length = length,
                              .side = side_of(side),
                              .origin = origin,
                              .inverse = inverse};
  const Rope& rope = rope_of(encoding);
  const nb::gil_scoped_release release;
  rope.rotate(from.view, options, to.view);
}

// -> (θ (pairs), magnitude)
nb::tuple frequencies(const BoundEncoding& encoding, int64_t length) {
  RopeFrequencies found = rope_of(encoding).frequencies(length);
  const int64_t shape[] = {static_cast<int64_t>(found.theta.size())};
  return nb::make_tuple(numpy_array(std::move(found.theta), shape), found.magnitude);
}

}  // namespace

void bind_rope(nb::module_& module) {
  module.def("rope_rotate", &rotate, nb::arg("encoding"), nb::arg("x"), nb::arg("out"),
             nb::arg("start"), nb::arg("positions").none(), nb::arg("length"), nb::arg("side"),
             nb::arg("origin"), nb::arg("inverse"), "Writes the rotated rows of x to out.");
  module.def("rope_frequencies", &frequencies, nb::arg("encoding"), nb::arg("length"),
             "The angle per position of each pair, and the magnitude.");
}

}  // namespace locant::python
