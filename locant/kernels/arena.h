// Scratch memory of one thread: taken piece by piece during a work item, kept for the next one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace locant {

class Arena {
 public:
  struct Mark {
    size_t chunk = 0, used = 0;
  };

  // Room for n values of T, aligned for vectors. The contents are undefined.
  template <class T>
  T* take(size_t n) {
    return static_cast<T*>(take_bytes(n * sizeof(T)));
  }

  Mark mark() const { return {current_, used_}; }
  void release(Mark mark) {
    current_ = mark.chunk;
    used_ = mark.used;
  }

  // The calling thread's own arena.
  static Arena& of_this_thread();

 private:
  void* take_bytes(size_t bytes);

  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Free> data;
    size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  size_t current_ = 0, used_ = 0;
};

}  // namespace locant
