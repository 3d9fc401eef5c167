// A dense tensor that owns its memory: what functions return when the caller gave no view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "locant/core/memory.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

class Tensor {
 public:
  Tensor() = default;

  // Zeros.
  Tensor(DType dtype, std::span<const int64_t> shape) : Tensor(undefined(dtype, shape)) {
    if (memory_.bytes() > 0) std::memset(memory_.data(), 0, memory_.bytes());
  }
  Tensor(DType dtype, std::initializer_list<int64_t> shape)
      : Tensor(dtype, std::span(shape.begin(), shape.size())) {}

  // To be written before it is read.
  static Tensor undefined(DType dtype, std::span<const int64_t> shape) {
    Tensor out;
    out.dtype_ = dtype;
    out.shape_.assign(shape.begin(), shape.end());
    size_t size = size_of(dtype);
    for (const int64_t extent : out.shape_) size *= static_cast<size_t>(extent);
    out.memory_ = Block(size);
    return out;
  }

  explicit operator bool() const { return !shape_.empty(); }
  View view() { return View(memory_.data(), dtype_, shape_); }
  ConstView view() const { return ConstView(memory_.data(), dtype_, shape_); }

 private:
  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_;
  Block memory_;
};

}  // namespace locant::inline v0
