// Calls from inside a host program's OpenMP region. Compiled with OpenMP where there is one.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "locant/core/executor.h"
#include "tests/attention_case.h"

namespace locant {
namespace {

TEST(OpenMp, CallsFromInsideAParallelRegionGiveTheSameBits) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "built without OpenMP";
#elif defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not know libgomp's locks";
#else
  constexpr int kCallers = 4;
  const int threads = num_threads();
  set_num_threads(2);
  for (const EncodingEntry& entry : encodings()) {
    AttentionCase alone(entry, DType::f32, {.q_len = 120, .k_len = 120});
    alone.run();
    std::deque<AttentionCase> cases;
    for (int n = 0; n < kCallers; ++n)
      cases.emplace_back(entry, DType::f32, Sizes{.q_len = 120, .k_len = 120});
#pragma omp parallel for num_threads(kCallers)
    for (int n = 0; n < kCallers; ++n)
      for (int round = 0; round < 5; ++round) cases[n].run();
    for (const AttentionCase& c : cases) EXPECT_EQ(c.out.values(), alone.out.values()) << c.label;
  }
  set_num_threads(threads);
#endif
}

}  // namespace
}  // namespace locant
