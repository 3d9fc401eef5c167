// A dense tensor that owns its memory: what functions return when the caller gave no view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "locant/core/view.h"

namespace locant::inline v0 {

class Tensor {
 public:
  Tensor() = default;

  // Zeros.
  Tensor(DType dtype, std::span<const int64_t> shape)
      : dtype_(dtype), shape_(shape.begin(), shape.end()) {
    size_t size = size_of(dtype);
    for (const int64_t extent : shape_) size *= static_cast<size_t>(extent);
    bytes_.resize(size);
  }
  Tensor(DType dtype, std::initializer_list<int64_t> shape)
      : Tensor(dtype, std::span(shape.begin(), shape.size())) {}

  explicit operator bool() const { return !shape_.empty(); }
  View view() { return View(bytes_.data(), dtype_, shape_); }
  ConstView view() const { return ConstView(bytes_.data(), dtype_, shape_); }

 private:
  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;
};

}  // namespace locant::inline v0
