#include "locant/kernels/arena.h"

#include <algorithm>
#include <new>

namespace locant::inline v0 {
namespace {

constexpr std::align_val_t kAlignment{128};
constexpr size_t kLine = 128;
constexpr size_t kSmallestChunk = size_t{1} << 20;

}  // namespace

void Arena::Free::operator()(std::byte* p) const {
  ::operator delete(p, kAlignment);
}

void* Arena::take_bytes(size_t bytes) {
  bytes = (bytes + kLine - 1) / kLine * kLine;
  while (current_ < chunks_.size() && used_ + bytes > chunks_[current_].size) {
    ++current_;
    used_ = 0;
  }
  if (current_ == chunks_.size()) {
    const size_t size = std::max(bytes, kSmallestChunk);
    Chunk chunk;
    chunk.data.reset(static_cast<std::byte*>(::operator new(size, kAlignment)));
    chunk.size = size;
    chunks_.push_back(std::move(chunk));
  }
  void* p = chunks_[current_].data.get() + used_;
  used_ += bytes;
  return p;
}

Arena& Arena::of_this_thread() {
  static thread_local Arena arena;
  return arena;
}

}  // namespace locant::inline v0
