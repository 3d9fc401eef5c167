// A contiguous tensor of any floating type that owns its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "locant/check/random.h"
#include "locant/core/view.h"

namespace locant {

class StoredTensor {
 public:
  StoredTensor(DType dtype, std::vector<int64_t> shape)
      : dtype_(dtype), shape_(std::move(shape)), size_(1) {
    for (const int64_t extent : shape_) size_ *= extent;
    // One more than needed: an empty tensor has an address, too.
    bytes_ = std::make_unique<std::byte[]>(size_ * size_of(dtype) + 1);
  }

  // Random numbers of mean 0 and variance scale².
  StoredTensor(DType dtype, std::vector<int64_t> shape, uint64_t seed, double scale = 1)
      : StoredTensor(dtype, std::move(shape)) {
    Random random(seed);
    for (int64_t n = 0; n < size_; ++n) set(n, scale * random.symmetric());
  }

  View view() const { return View(bytes_.get(), dtype_, shape_); }
  int64_t size() const { return size_; }

  // Element n, counted through.
  double get(int64_t n) const { return element(flat(), n); }
  void set(int64_t n, double value) { set_element(flat(), value, n); }

  std::vector<double> values() const {
    std::vector<double> out(size_);
    for (int64_t n = 0; n < size_; ++n) out[n] = get(n);
    return out;
  }

 private:
  View flat() const { return View(bytes_.get(), dtype_, std::span(&size_, 1)); }

  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace locant
