#include "tests/rejections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

thread_local bool watching = false;
thread_local size_t largest = 0;

void note(size_t bytes) {
  if (watching) largest = std::max(largest, bytes);
}

long long now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

// Every allocation of the program passes here; sanitizers have their own ways, so not with them.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
// NOLINTBEGIN: names of the C library
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note(bytes);
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
// NOLINTEND
}
#endif

namespace locant {

RejectionWatch::RejectionWatch() : began_(now()) {
  largest = 0;
  watching = true;
}

RejectionWatch::~RejectionWatch() {
  watching = false;
}

void RejectionWatch::rejected(std::string message) {
  const double milliseconds = static_cast<double>(now() - began_) * 1e-6;
  watching = false;
  const char* path = std::getenv("LOCANT_REJECTIONS");
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  if (path == nullptr || test == nullptr) return;
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) return;
  std::ranges::replace_if(message, [](unsigned char c) { return c < ' '; }, ' ');
  std::fprintf(file, "%s.%s\t%.4f\t%zu\t%s\n", test->test_suite_name(), test->name(), milliseconds,
               largest, message.c_str());
  std::fclose(file);
}

}  // namespace locant
