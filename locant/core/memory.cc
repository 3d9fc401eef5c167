#include "locant/core/memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace locant::inline v0 {

void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<uintptr_t>(data);
  const size_t skip = (kHugePage - address % kHugePage) % kHugePage;
  if (bytes < skip + kHugePage) return;
  const size_t whole = (bytes - skip) / kHugePage * kHugePage;
  static_cast<void>(madvise(static_cast<std::byte*>(data) + skip, whole, MADV_HUGEPAGE));
#endif
}

}  // namespace locant::inline v0
