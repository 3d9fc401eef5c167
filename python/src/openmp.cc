#include "openmp.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "locant/core/error.h"
#include "locant/core/executor.h"

namespace locant::python {
namespace {

namespace nb = nanobind;

// What is needed of a runtime, under the names that GNU's gave it; LLVM's and Intel's have them
// too. They are found at run time: linking to one of our own would bring a second pool.
struct Runtime {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);  // GOMP_parallel
  int (*in_parallel)();                                          // omp_in_parallel
  int (*thread_number)();                                        // omp_get_thread_num
};

class OpenMpExecutor final : public Executor {
 public:
  OpenMpExecutor(const Runtime& runtime, int threads) : runtime_(runtime), threads_(threads) {}

  int concurrency() const override { return threads_; }

  void parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) override {
    if (threads_ == 1 || count <= 1 || runtime_.in_parallel() != 0) {
      for (int64_t index = 0; index < count; ++index) body(index, 0);
      return;
    }
    Team team{.runtime = runtime_, .count = count, .body = body, .error = {}};
    const auto size = static_cast<unsigned>(std::min<int64_t>(threads_, count));
    runtime_.parallel([](void* data) { static_cast<Team*>(data)->run(); }, &team, size, 0);
    if (team.error) std::rethrow_exception(team.error);
  }

 private:
  struct Team {
    const Runtime& runtime;
    const int64_t count;
    const std::function<void(int64_t, int)>& body;
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // written once, by whoever turned `failed` on

    void run() {
      const int worker = runtime.thread_number();
      try {
        for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;)
          body(index, worker);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(count, std::memory_order_relaxed);
      }
    }
  };

  const Runtime runtime_;
  const int threads_;
};

template <class Function>
Function function_at(uintptr_t address) {
  return reinterpret_cast<Function>(address);  // NOLINT(performance-no-int-to-ptr)
}

void use_openmp(uintptr_t parallel, uintptr_t in_parallel, uintptr_t thread_number, int threads) {
  require(parallel != 0 && in_parallel != 0 && thread_number != 0, "threads",
          "the OpenMP runtime lacks a function");
  require(threads >= 1, "threads", "the number of threads must be >= 1, got ", threads);
  const Runtime runtime{.parallel = function_at<decltype(Runtime::parallel)>(parallel),
                        .in_parallel = function_at<decltype(Runtime::in_parallel)>(in_parallel),
                        .thread_number =
                            function_at<decltype(Runtime::thread_number)>(thread_number)};
  set_executor(std::make_shared<OpenMpExecutor>(runtime, threads));
}

}  // namespace

void bind_openmp(nb::module_& module) {
  module.def("use_openmp", &use_openmp, nb::arg("parallel"), nb::arg("in_parallel"),
             nb::arg("thread_number"), nb::arg("threads"),
             "Runs all work on an OpenMP runtime, given by the addresses of GOMP_parallel, "
             "omp_in_parallel and omp_get_thread_num.");
}

}  // namespace locant::python
