#include "locant/core/view.h"

#include <cstring>

namespace locant::inline v0 {
namespace {

template <class T>
T load(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <class T>
void store(T value, std::byte* address) {
  std::memcpy(address, &value, sizeof value);
}

// Of the element (a, b, c, e), in bytes from the first.
template <class Void>
int64_t byte_offset(const BasicView<Void>& view, int64_t a, int64_t b, int64_t c, int64_t e) {
  const int64_t index =
      a * view.strides[0] + b * view.strides[1] + c * view.strides[2] + e * view.strides[3];
  return index * static_cast<int64_t>(size_of(view.dtype));
}

}  // namespace

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::boolean:
      return 1;
  }
  fail("view", "unknown dtype ", static_cast<int>(dtype));
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::boolean:
      return "bool";
    case DType::i64:
      return "i64";
  }
  fail("view", "unknown dtype ", static_cast<int>(dtype));
}

double element(const ConstView& view, int64_t a, int64_t b, int64_t c, int64_t e) {
  const std::byte* address =
      static_cast<const std::byte*>(view.data) + byte_offset(view, a, b, c, e);
  switch (view.dtype) {
    case DType::f32:
      return load<float>(address);
    case DType::f64:
      return load<double>(address);
    case DType::f16:
      return load<Half>(address);
    case DType::bf16:
      return load<Bfloat>(address);
    case DType::boolean:
      // Read as a byte: any non-zero value is true, whoever wrote it.
      return load<uint8_t>(address) != 0 ? 1.0 : 0.0;
    case DType::i64:
      return static_cast<double>(load<int64_t>(address));
  }
  fail("view", "unknown dtype ", static_cast<int>(view.dtype));
}

void set_element(const View& view, double value, int64_t a, int64_t b, int64_t c, int64_t e) {
  std::byte* address = static_cast<std::byte*>(view.data) + byte_offset(view, a, b, c, e);
  switch (view.dtype) {
    case DType::f32:
      return store(static_cast<float>(value), address);
    case DType::f64:
      return store(value, address);
    case DType::f16:
      return store(Half(static_cast<float>(value)), address);
    case DType::bf16:
      return store(Bfloat(static_cast<float>(value)), address);
    case DType::boolean:
    case DType::i64:
      break;
  }
  fail("view", "cannot store a number in elements of type ", name_of(view.dtype));
}

std::string shape_text(const ConstView& view) {
  return shape_text(std::span(view.shape.data(), static_cast<size_t>(view.rank)));
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + ")";
}

}  // namespace locant::inline v0
