// The limits that times are compared with: multiply-adds that stay in registers, and plain reads.
// Built by machine_peaks.py for the machine it runs on; GCC vector extensions, so not only x86.
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * kLanes)));
// The same vector at any 4-byte aligned address.
typedef float UnalignedVector __attribute__((vector_size(4 * kLanes), aligned(4)));

// Enough independent chains for 2 units of latency 4 (and 5), few enough for 16 registers.
constexpr int kChains = 12;

float fma_chains(int64_t steps) {
  Vector acc[kChains];
  for (int c = 0; c < kChains; ++c) acc[c] = Vector{} + (1.0f + c);
  Vector a = Vector{} + 0.999f;
  Vector b = Vector{} + 0.001f;
  asm volatile("" : "+m"(a), "+m"(b));  // not constants, for the optimizer
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = acc[c] * a + b;
  }
  Vector total = {};
  for (int c = 0; c < kChains; ++c) total += acc[c];
  return total[0];
}

float sum(const float* x, int64_t count) {
  constexpr int kStreams = 8;
  Vector acc[kStreams] = {};
  int64_t i = 0;
  for (; i + kStreams * kLanes <= count; i += kStreams * kLanes) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
      acc[s] += *reinterpret_cast<const UnalignedVector*>(x + i + s * kLanes);
    }
  }
  float total = 0;
  for (int s = 0; s < kStreams; ++s) {
    for (int lane = 0; lane < kLanes; ++lane) total += acc[s][lane];
  }
  for (; i < count; ++i) total += x[i];
  return total;
}

template <class Work>
double on_threads(int threads, Work work) {
  std::vector<float> results(threads);
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { results[t] = work(t); });
  results[0] = work(0);
  for (std::thread& other : others) other.join();
  double total = 0;
  for (float result : results) total += result;
  return total;
}

}  // namespace

extern "C" {

double fma_flops_per_step() {
  return 2.0 * kLanes * kChains;
}

double run_fma(int threads, int64_t steps) {
  return on_threads(threads, [=](int) { return fma_chains(steps); });
}

double read_sum(int threads, const float* x, int64_t count) {
  const int64_t share = (count + threads - 1) / threads;
  return on_threads(threads, [=](int t) {
    const int64_t begin = std::min(count, t * share);
    return sum(x + begin, std::min(share, count - begin));
  });
}

}  // extern "C"
