#include "locant/core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "locant/core/sanitizer.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kLine = 128;
constexpr size_t kPage = 4096;
constexpr size_t kSmallest = size_t{128} << 10;  // below this malloc keeps blocks by itself
#if LOCANT_WATCHED
constexpr size_t kMostKept = 0;  // it is to see what is used after it was given back
#else
constexpr size_t kMostKept = size_t{64} << 20;  // of memory that nobody uses
#endif

std::byte* fresh(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : bytes >= kSmallest ? kPage : kLine;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  prefer_huge_pages(data, bytes);
  return static_cast<std::byte*>(data);
}

// Blocks that were given back. Nobody waits for the lock: who does not get it at once asks the
// system, as does a child that was forked while another thread held it.
class Kept {
 public:
  // -> {data, bytes}, or nothing if no block fits.
  std::pair<std::byte*, size_t> take(size_t bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {};
    const auto found = blocks_.lower_bound(bytes);
    if (found == blocks_.end() || found->first > bytes + bytes / 4) return {};
    const std::pair<std::byte*, size_t> out(found->second, found->first);
    total_ -= found->first;
    blocks_.erase(found);
    return out;
  }

  // Whether it took the block.
  bool give(std::byte* data, size_t bytes) {
    if (bytes > kMostKept) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    while (total_ + bytes > kMostKept) {  // sizes that are no longer asked for must go
      const auto first = blocks_.begin();
      total_ -= first->first;
      std::free(first->second);  // NOLINT(cppcoreguidelines-no-malloc): from aligned_alloc
      blocks_.erase(first);
    }
    try {
      blocks_.emplace(bytes, data);
    } catch (const std::bad_alloc&) {
      return false;
    }
    total_ += bytes;
    return true;
  }

 private:
  std::mutex mutex_;
  std::multimap<size_t, std::byte*> blocks_;
  size_t total_ = 0;
};

// Never destroyed: blocks are given back after main(), too.
Kept& kept() {
  static auto* const all = new Kept;
  return *all;
}

}  // namespace

void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<uintptr_t>(data);
  const size_t skip = (kHugePage - address % kHugePage) % kHugePage;
  if (bytes < skip + kHugePage) return;
  const size_t whole = (bytes - skip) / kHugePage * kHugePage;
  static_cast<void>(madvise(static_cast<std::byte*>(data) + skip, whole, MADV_HUGEPAGE));
#endif
}

Block::Block(size_t bytes) {
  if (bytes == 0) return;
  if (bytes >= kSmallest) std::tie(data_, bytes_) = kept().take(bytes);
  if (data_ != nullptr) return;
  data_ = fresh(bytes);
  bytes_ = bytes;
}

Block::~Block() {
  if (data_ == nullptr || (bytes_ >= kSmallest && kept().give(data_, bytes_))) return;
  std::free(data_);  // NOLINT(cppcoreguidelines-no-malloc): from aligned_alloc
}

}  // namespace locant::inline v0
