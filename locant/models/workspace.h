// Memory of a model's calls: a call borrows a workspace and gives it back, so as many exist as calls
// ever ran at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace locant::inline v0 {

template <class Workspace>
class WorkspacePool {
 public:
  // Room to give every workspace back without allocating: a destructor must not throw.
  WorkspacePool() { idle_.reserve(4096); }

  // A workspace for the time of a call.
  class Borrowed {
   public:
    explicit Borrowed(WorkspacePool& pool) : pool_(pool) {
      const std::lock_guard lock(pool.mutex_);
      if (!pool.idle_.empty()) {
        work_ = std::move(pool.idle_.back());
        pool.idle_.pop_back();
      }
      if (!work_) work_ = std::make_unique<Workspace>();
    }
    ~Borrowed() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(work_));
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Workspace& operator*() const { return *work_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Workspace> work_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace locant::inline v0
