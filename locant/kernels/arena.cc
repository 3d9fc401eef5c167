#include "locant/kernels/arena.h"

#include <algorithm>
#include <new>

#include "locant/core/sanitizer.h"

#if LOCANT_WATCHED
extern "C" void __asan_poison_memory_region(const volatile void* data, size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* data, size_t bytes);
#endif

namespace locant::inline v0 {
namespace {

// Under AddressSanitizer only what is taken may be touched, and a line between two pieces never.
#if LOCANT_WATCHED
constexpr size_t kBetween = 128;
void forbid(const std::byte* data, size_t bytes) {
  __asan_poison_memory_region(data, bytes);
}
void allow(const std::byte* data, size_t bytes) {
  __asan_unpoison_memory_region(data, bytes);
}
#else
constexpr size_t kBetween = 0;
void forbid(const std::byte*, size_t) {}
void allow(const std::byte*, size_t) {}
#endif

constexpr std::align_val_t kAlignment{128};
constexpr size_t kLine = 128;
constexpr size_t kSmallestChunk = size_t{1} << 20;
constexpr size_t kMostSpare = size_t{16} << 20;

}  // namespace

void Arena::Free::operator()(std::byte* p) const {
  ::operator delete(p, kAlignment);
}

void* Arena::take_bytes(size_t wanted) {
  const size_t bytes = (wanted + kLine - 1) / kLine * kLine + kBetween;
  while (current_ < chunks_.size() && used_ + bytes > chunks_[current_].size) {
    // Nothing of this chunk is in use, and so nothing of those behind it: without them, sizes that
    // rise from call to call would leave a chunk each.
    if (used_ == 0) {
      free_from(current_);
      break;
    }
    ++current_;
    used_ = 0;
  }
  if (current_ == chunks_.size()) add_chunk(bytes);
  std::byte* p = chunks_[current_].data.get() + used_;
  allow(p, wanted);
  used_ += bytes;
  return p;
}

// With some to spare: sizes that rise slowly need a new chunk now and then only.
void Arena::add_chunk(size_t bytes) {
  const size_t size = std::max(bytes + std::min(bytes / 8, kMostSpare), kSmallestChunk);
  Chunk chunk;
  chunk.data.reset(static_cast<std::byte*>(::operator new(size, kAlignment)));
  chunk.size = size;
  forbid(chunk.data.get(), size);
  chunks_.push_back(std::move(chunk));
}

void Arena::free_from(size_t chunk) {
  for (size_t n = chunk; n < chunks_.size(); ++n) allow(chunks_[n].data.get(), chunks_[n].size);
  chunks_.resize(chunk);
}

void Arena::release(Mark mark) {
  if (LOCANT_WATCHED && mark.chunk < chunks_.size()) {
    forbid(chunks_[mark.chunk].data.get() + mark.used, chunks_[mark.chunk].size - mark.used);
    for (size_t n = mark.chunk + 1; n < chunks_.size(); ++n)
      forbid(chunks_[n].data.get(), chunks_[n].size);
  }
  current_ = mark.chunk;
  used_ = mark.used;
}

Arena::~Arena() {
  free_from(0);
}

size_t Arena::bytes() const {
  size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.size;
  return sum;
}

Arena& Arena::of_this_thread() {
  static thread_local Arena arena;
  return arena;
}

}  // namespace locant::inline v0
