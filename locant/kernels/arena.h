// Scratch memory of one thread: taken piece by piece during a work item, kept for the next one.
// What is kept follows the largest item, however many sizes there were.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace locant::inline v0 {

class Arena {
  struct Mark {
    size_t chunk = 0, used = 0;
  };

 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Room for n values of T, aligned for vectors. The contents are undefined.
  template <class T>
  T* take(size_t n) {
    return static_cast<T*>(take_bytes(n * sizeof(T)));
  }

  // Gives back everything taken during its life.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
    ~Scope() { arena_.release(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    Mark mark_;
  };

  // Memory that it holds, taken or not.
  size_t bytes() const;

  // The calling thread's own arena.
  static Arena& of_this_thread();

 private:
  Mark mark() const { return {current_, used_}; }
  void release(Mark mark);

  void* take_bytes(size_t wanted);
  void add_chunk(size_t bytes);
  void free_from(size_t chunk);

  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Free> data;
    size_t size = 0;
  };
  std::vector<Chunk> chunks_;  // in use up to `used_` bytes of the one at current_
  size_t current_ = 0, used_ = 0;
};

}  // namespace locant::inline v0
