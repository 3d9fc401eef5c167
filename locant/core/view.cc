#include "locant/core/view.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace locant::inline v0 {
namespace {

// IEEE binary16: 1 sign, 5 exponent and 10 fraction bits.
double half_value(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(0x400 + fraction, exponent - 25);
}

// bfloat16 is the upper half of a float.
double bfloat_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <class T>
T load(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
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
  const int64_t index =
      a * view.strides[0] + b * view.strides[1] + c * view.strides[2] + e * view.strides[3];
  const std::byte* address =
      static_cast<const std::byte*>(view.data) + index * static_cast<int64_t>(size_of(view.dtype));
  switch (view.dtype) {
    case DType::f32:
      return load<float>(address);
    case DType::f64:
      return load<double>(address);
    case DType::f16:
      return half_value(load<uint16_t>(address));
    case DType::bf16:
      return bfloat_value(load<uint16_t>(address));
    case DType::boolean:
      // Read as a byte: any non-zero value is true, whoever wrote it.
      return load<uint8_t>(address) != 0 ? 1.0 : 0.0;
    case DType::i64:
      return static_cast<double>(load<int64_t>(address));
  }
  fail("view", "unknown dtype ", static_cast<int>(view.dtype));
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
