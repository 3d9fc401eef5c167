// Python arrays as views: numpy and any DLPack tensor on the CPU, any strides, nothing copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "locant/core/tensor.h"
#include "locant/core/view.h"

namespace locant::python {

namespace nb = nanobind;

// The array keeps the memory alive for as long as the view is used.
struct InputArray {
  nb::ndarray<nb::ro> array;
  ConstView view;
};

struct OutputArray {
  nb::ndarray<> array;
  View view;
};

// How many axes an argument must have, and what they are, for the error message.
struct Axes {
  int count = 0;
  std::string_view text;  // "(B, H, L, d)"
};

// None gives an empty view. Errors name the argument: "[attention] q must have 4 axes (B, H, L, d),
// got shape (3, 4)".
InputArray input_array(nb::handle object, std::string_view name, const Axes& axes);
OutputArray output_array(nb::handle object, std::string_view name, const Axes& axes);

// As many axes as the array has, up to four.
InputArray input_array(nb::handle object, std::string_view name);

// Axes of extent 1 are added in front until there are `rank`, the way numpy broadcasts.
InputArray broadcast_array(nb::handle object, std::string_view name, int rank);

// Position ids: (L) or (B, L) as (B, L), and (B, L, axes).
InputArray position_array(nb::handle object, std::string_view name);

// A one-axis integer array as numbers; None gives none.
std::vector<int64_t> integers(nb::handle object, std::string_view name);

// A new numpy array that owns the numbers; the tensor is f32 or f64.
nb::object numpy_array(std::vector<double> values, std::span<const int64_t> shape);
nb::object numpy_array(Tensor tensor);

}  // namespace locant::python
