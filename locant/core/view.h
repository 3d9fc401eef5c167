// Strided views: a pointer, an element type, up to four extents and strides. They own nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "locant/core/api.h"
#include "locant/core/error.h"
#include "locant/core/half.h"

namespace locant::inline v0 {

enum class DType : uint8_t { f32, f64, f16, bf16, boolean, i64 };

// Bytes of an element, and its name: "f32", "bf16", ...
LOCANT_API size_t size_of(DType dtype);
LOCANT_API const char* name_of(DType dtype);

// 16 bits wide, and any floating type.
constexpr bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}
constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || is_half(dtype);
}

// dtype_of<float>() = DType::f32
template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  static_assert(std::is_same_v<U, float> || std::is_same_v<U, double> || std::is_same_v<U, Half> ||
                std::is_same_v<U, Bfloat> || std::is_same_v<U, bool> || std::is_same_v<U, int64_t>);
  if constexpr (std::is_same_v<U, float>) return DType::f32;
  if constexpr (std::is_same_v<U, double>) return DType::f64;
  if constexpr (std::is_same_v<U, Half>) return DType::f16;
  if constexpr (std::is_same_v<U, Bfloat>) return DType::bf16;
  if constexpr (std::is_same_v<U, bool>) return DType::boolean;
  return DType::i64;
}

using Extents = std::array<int64_t, 4>;

// Void is `void` (writable) or `const void` (read-only); View converts to ConstView.
// Axes beyond `rank` have extent 1 and stride 0. Strides count elements and may be 0 or negative.
template <class Void>
struct BasicView {
  Void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  Extents shape = {1, 1, 1, 1};
  Extents strides = {0, 0, 0, 0};

  BasicView() = default;

  BasicView(Void* data, DType dtype, std::span<const int64_t> extents)
      : data(data), dtype(dtype), rank(static_cast<int>(extents.size())) {
    require(extents.size() <= shape.size(), "view", "at most 4 axes, got ", extents.size());
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      shape[axis] = extents[axis];
      strides[axis] = stride;
      stride *= extents[axis];
    }
  }

  BasicView(Void* data, DType dtype, std::span<const int64_t> extents,
            std::span<const int64_t> element_strides)
      : BasicView(data, dtype, extents) {
    require(element_strides.size() == extents.size(), "view", "got ", extents.size(),
            " extents but ", element_strides.size(), " strides");
    for (int axis = 0; axis < rank; ++axis) strides[axis] = element_strides[axis];
  }

  template <class Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      BasicView(const BasicView<Other>& other)  // NOLINT: a writable view is a readable one
      : data(other.data),
        dtype(other.dtype),
        rank(other.rank),
        shape(other.shape),
        strides(other.strides) {}

  explicit operator bool() const { return data != nullptr; }

  int64_t size() const { return shape[0] * shape[1] * shape[2] * shape[3]; }

  template <class T>
  auto* at(int64_t a = 0, int64_t b = 0, int64_t c = 0, int64_t e = 0) const {
    using Pointer = std::conditional_t<std::is_const_v<Void>, const T*, T*>;
    return static_cast<Pointer>(data) + a * strides[0] + b * strides[1] + c * strides[2] +
           e * strides[3];
  }

  // Where the row (a, b, c, :) begins, whatever the type of its elements.
  Void* row(int64_t a, int64_t b, int64_t c) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    return static_cast<Byte*>(data) + (a * strides[0] + b * strides[1] + c * strides[2]) *
                                          static_cast<int64_t>(size_of(dtype));
  }

  // The same elements with `axis` running backwards.
  BasicView reversed(int axis) const {
    BasicView out = *this;
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    out.data = static_cast<Byte*>(data) +
               (shape[axis] - 1) * strides[axis] * static_cast<int64_t>(size_of(dtype));
    out.strides[axis] = -strides[axis];
    return out;
  }
};

using View = BasicView<void>;
using ConstView = BasicView<const void>;

// view(pointer, {B, H, L, d}): contiguous, row-major.
template <class T>
auto view(T* data, std::initializer_list<int64_t> extents) {
  using Void = std::conditional_t<std::is_const_v<T>, const void, void>;
  return BasicView<Void>(data, dtype_of<T>(), std::span(extents.begin(), extents.size()));
}

// One element as a double, whatever its type.
LOCANT_API double element(const ConstView& view, int64_t a = 0, int64_t b = 0, int64_t c = 0,
                          int64_t e = 0);

// Writes one element of a floating type, rounded to nearest; 16-bit types by way of float32.
LOCANT_API void set_element(const View& view, double value, int64_t a = 0, int64_t b = 0,
                            int64_t c = 0, int64_t e = 0);

// "(2, 12, 128, 64)"
LOCANT_API std::string shape_text(const ConstView& view);
LOCANT_API std::string shape_text(std::span<const int64_t> shape);

}  // namespace locant::inline v0
