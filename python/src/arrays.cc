#include "arrays.h"

#include <memory>
#include <string>
#include <utility>

#include "locant/core/error.h"

namespace locant::python {
namespace {

std::string dtype_text(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  std::string kind = "type code " + std::to_string(dtype.code) + ", bits ";
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int:
      kind = "int";
      break;
    case Code::UInt:
      kind = "uint";
      break;
    case Code::Float:
      kind = "float";
      break;
    case Code::Bfloat:
      kind = "bfloat";
      break;
    case Code::Complex:
      kind = "complex";
      break;
    case Code::Bool:
      return "bool";
    default:
      break;
  }
  return kind + std::to_string(dtype.bits);
}

DType dtype_of_array(nb::dlpack::dtype dtype, std::string_view name) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return dtype.code == static_cast<uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  if (is(Code::Float, 32)) return DType::f32;
  if (is(Code::Float, 64)) return DType::f64;
  if (is(Code::Float, 16)) return DType::f16;
  if (is(Code::Bfloat, 16)) return DType::bf16;
  if (is(Code::Bool, 8)) return DType::boolean;
  if (is(Code::Int, 64)) return DType::i64;
  fail("attention", name, " has the element type ", dtype_text(dtype),
       ", which is none of float32, float64, float16, bfloat16, bool, int64");
}

// ReadOnly or writable array, imported without a copy.
template <class Array>
Array import_array(nb::handle object, std::string_view name) {
  Array array;
  if (!nb::try_cast(object, array, /*convert=*/false)) {
    const std::string type = nb::type_name(object.type()).c_str();
    fail("attention", name, " must be a ", Array::ReadOnly ? "" : "writable ",
         "numpy array or a DLPack tensor on the CPU whose strides are whole elements, got ", type);
  }
  require(array.device_type() == nb::device::cpu::value, "attention", name,
          " must be on the CPU, got DLPack device type ", array.device_type());
  return array;
}

template <class Array>
auto view_of(const Array& array, std::string_view name) {
  using ArrayView = std::conditional_t<Array::ReadOnly, ConstView, View>;
  const std::span<const int64_t> shape(array.shape_ptr(), array.ndim());
  require(array.ndim() <= 4, "attention", name, " must have at most 4 axes, got shape ",
          shape_text(shape));
  return ArrayView(array.data(), dtype_of_array(array.dtype(), name), shape,
                   std::span(array.stride_ptr(), array.ndim()));
}

template <class Result>
Result with_axes(nb::handle object, std::string_view name, const Axes& axes) {
  if (object.is_none()) return {};
  Result result;
  result.array = import_array<decltype(result.array)>(object, name);
  const std::span<const int64_t> shape(result.array.shape_ptr(), result.array.ndim());
  require(static_cast<int>(shape.size()) == axes.count, "attention", name, " must have ",
          axes.count, " axes ", axes.text, ", got shape ", shape_text(shape));
  result.view = view_of(result.array, name);
  return result;
}

// `data` points into what `owner` holds, and stays there when it is moved.
template <class T, class Owner>
nb::object owning_array(T* data, std::span<const int64_t> shape, Owner owner) {
  auto owned = std::make_unique<Owner>(std::move(owner));
  nb::capsule capsule(owned.get(), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  static_cast<void>(owned.release());
  const std::vector<size_t> extents(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy, T>(data, extents.size(), extents.data(), capsule));
}

}  // namespace

InputArray input_array(nb::handle object, std::string_view name, const Axes& axes) {
  return with_axes<InputArray>(object, name, axes);
}

OutputArray output_array(nb::handle object, std::string_view name, const Axes& axes) {
  return with_axes<OutputArray>(object, name, axes);
}

InputArray input_array(nb::handle object, std::string_view name) {
  if (object.is_none()) return {};
  InputArray result;
  result.array = import_array<nb::ndarray<nb::ro>>(object, name);
  result.view = view_of(result.array, name);
  return result;
}

InputArray broadcast_array(nb::handle object, std::string_view name, int rank) {
  InputArray result = input_array(object, name);
  const ConstView given = result.view;
  if (object.is_none()) return result;
  require(given.rank <= rank, "attention", name, " must have at most ", rank, " axes, got shape ",
          shape_text(given));
  result.view.rank = rank;
  const int added = rank - given.rank;
  for (int axis = 0; axis < rank; ++axis) {
    result.view.shape[axis] = axis < added ? 1 : given.shape[axis - added];
    result.view.strides[axis] = axis < added ? 0 : given.strides[axis - added];
  }
  return result;
}

InputArray position_array(nb::handle object, std::string_view name) {
  const InputArray given = input_array(object, name);
  return given.view.rank == 3 ? given : broadcast_array(object, name, 2);
}

std::vector<int64_t> integers(nb::handle object, std::string_view name) {
  const InputArray given = input_array(object, name, {1, "(B)"});
  if (!given.view) return {};
  require(given.view.dtype == DType::i64, "attention", name, " must be int64, got ",
          name_of(given.view.dtype));
  std::vector<int64_t> out(given.view.shape[0]);
  for (size_t i = 0; i < out.size(); ++i) out[i] = *given.view.at<int64_t>(static_cast<int64_t>(i));
  return out;
}

nb::object numpy_array(std::vector<double> values, std::span<const int64_t> shape) {
  double* data = values.data();
  return owning_array(data, shape, std::move(values));
}

nb::object numpy_array(Tensor tensor) {
  const View view = tensor.view();
  const std::span<const int64_t> shape(view.shape.data(), view.rank);
  if (view.dtype == DType::f64) return owning_array(view.at<double>(), shape, std::move(tensor));
  return owning_array(view.at<float>(), shape, std::move(tensor));
}

}  // namespace locant::python
