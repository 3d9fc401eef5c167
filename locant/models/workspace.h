// Memory of a model's calls: a call borrows a workspace and gives it back, so about as many exist
// as calls ever ran at once.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace locant::inline v0 {

// Nobody waits for the lock: who does not get it at once makes a workspace of its own, as does a
// child that was forked while another thread held it.
template <class Workspace>
class WorkspacePool {
 public:
  // Room to give every workspace back without allocating: a destructor must not throw.
  WorkspacePool() { idle_.reserve(kMostIdle); }

  // A workspace for the time of a call.
  class Borrowed {
   public:
    explicit Borrowed(WorkspacePool& pool) : pool_(pool), work_(pool.take()) {
      if (!work_) work_ = std::make_unique<Workspace>();
    }
    ~Borrowed() { pool_.give(std::move(work_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Workspace& operator*() const { return *work_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Workspace> work_;
  };

 private:
  static constexpr size_t kMostIdle = 4096;

  // One that was given back, or null.
  std::unique_ptr<Workspace> take() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || idle_.empty()) return nullptr;
    std::unique_ptr<Workspace> work = std::move(idle_.back());
    idle_.pop_back();
    return work;
  }

  void give(std::unique_ptr<Workspace> work) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && idle_.size() < kMostIdle) idle_.push_back(std::move(work));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace locant::inline v0
