// Threads: one pool of std::thread, behind an interface that a host program can replace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "locant/core/api.h"

namespace locant::inline v0 {

// Runs the work items of a call. A host program with threads of its own derives from this.
class LOCANT_API Executor {
 public:
  virtual ~Executor() = default;

  // How many calls of `body` may run at once, at least 1; bodies see a worker number below this.
  virtual int concurrency() const = 0;

  // Runs body(index, worker) for every index in [0, count), in any order, and returns when all are
  // done. Two bodies that run at the same time never share a worker number. The first exception
  // thrown by a body is rethrown here, after the others have ended.
  virtual void parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) = 0;
};

// locant's own pool. Threads start on first use, look for more work for a fraction of a millisecond
// and then block; a forked child starts its own.
LOCANT_API std::shared_ptr<Executor> make_thread_pool(int threads);

// The executor all calls use. set_num_threads(n) makes a pool of n (n >= 1); set_executor installs
// another. Calls under way keep the executor they began with.
LOCANT_API std::shared_ptr<Executor> executor();
LOCANT_API void set_executor(std::shared_ptr<Executor> executor);
LOCANT_API void set_num_threads(int threads);
LOCANT_API int num_threads();

}  // namespace locant::inline v0
