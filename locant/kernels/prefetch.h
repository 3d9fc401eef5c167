// Requests for cache lines that will be used soon. A request never faults.
//
// In assembler, because GCC 12 takes a function that does nothing but __builtin_prefetch for one
// without effect, and drops the calls that it has not inlined by then.
#pragma once

namespace locant::inline v0 {

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define LOCANT_PREFETCH(instruction, read_or_write, level, p) \
  asm volatile(instruction " %0" : : "m"(*static_cast<const char*>(p)))
#elif defined(__GNUC__)
#define LOCANT_PREFETCH(instruction, read_or_write, level, p) \
  __builtin_prefetch(p, read_or_write, level)
#else
#define LOCANT_PREFETCH(instruction, read_or_write, level, p) static_cast<void>(p)
#endif

// To be read, into the first level.
inline void Prefetch(const void* p) {
  LOCANT_PREFETCH("prefetcht0", 0, 3, p);
}

// To be read, into the second level.
inline void PrefetchFar(const void* p) {
  LOCANT_PREFETCH("prefetcht1", 0, 2, p);
}

// To be written: the core gets the line for itself, and others give up their copies.
inline void PrefetchToWrite(const void* p) {
  LOCANT_PREFETCH("prefetchw", 1, 3, p);
}

#undef LOCANT_PREFETCH

}  // namespace locant::inline v0
