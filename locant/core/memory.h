// Large blocks of memory. Fresh pages are dear: writing to one for the first time costs a fault, on
// a virtual machine 2 µs per 4 kB (docs/decisions/0008). So blocks that are given back are kept for
// the next who asks, and large ones lie on huge pages.
#pragma once

#include <cstddef>
#include <utility>

#include "locant/core/api.h"

namespace locant::inline v0 {

inline constexpr size_t kHugePage = size_t{2} << 20;

// Asks for huge pages under the part of [data, data + bytes) that fills whole ones. Only a hint:
// systems without them ignore it.
LOCANT_API void prefer_huge_pages(void* data, size_t bytes);

// A block of memory, aligned to 128 bytes or more; its contents are undefined.
class LOCANT_API Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  ~Block();
  Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // at least what was asked for

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace locant::inline v0
