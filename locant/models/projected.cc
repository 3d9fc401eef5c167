#include "locant/models/projected.h"

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

namespace locant::inline v0 {
namespace {

// Texts that grow token by token need a new table only when their length has doubled.
int64_t rounded_up(int64_t distance) {
  constexpr uint64_t kLeast = 128;
  if (distance == 0) return 0;
  return static_cast<int64_t>(std::bit_ceil(std::max(kLeast, static_cast<uint64_t>(distance))));
}

// The lock, or none after a while: in a child that was forked while another thread had it, nobody
// will give it back. All others hold it for a few instructions only.
std::unique_lock<std::mutex> try_to_lock(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int n = 0; !lock && n < 100; ++n) {
    std::this_thread::yield();
    static_cast<void>(lock.try_lock());
  }
  return lock;
}

}  // namespace

ProjectedEncodings::ProjectedEncodings(std::vector<Make> layers, int64_t farthest)
    : layers_(std::move(layers)), farthest_(farthest) {}

std::shared_ptr<const ProjectedEncodings::List> ProjectedEncodings::get(int64_t behind,
                                                                        int64_t ahead) const {
  behind = std::min(behind, farthest_);
  ahead = std::min(ahead, farthest_);
  const bool project = std::max(behind, ahead) <= kMostKept;
  Kept wanted;
  {
    const std::unique_lock lock = try_to_lock(mutex_);
    const Kept& kept = project ? kept_ : plain_;
    if (lock && kept.list != nullptr && (!project || kept.covers(behind, ahead))) return kept.list;
    if (project) {
      wanted.behind = std::min(rounded_up(behind), farthest_);
      wanted.ahead = std::min(rounded_up(ahead), farthest_);
      if (lock) wanted.grow_to(kept.behind, kept.ahead);
    }
  }
  // Without the lock, which a fork meanwhile would leave locked in the child for ever. Threads that
  // need the same tables at the same time each make them; one of them is kept.
  wanted.list = make(wanted.behind, wanted.ahead, project);
  if (const std::unique_lock lock = try_to_lock(mutex_)) {
    Kept& kept = project ? kept_ : plain_;
    if (kept.list == nullptr || !kept.covers(wanted.behind, wanted.ahead)) kept = wanted;
  }
  return wanted.list;
}

std::shared_ptr<const ProjectedEncodings::List> ProjectedEncodings::make(int64_t behind,
                                                                         int64_t ahead,
                                                                         bool project) const {
  auto list = std::make_shared<List>();
  for (const Make& layer : layers_) {
    const std::shared_ptr<Encoding> encoding = layer();
    if (project) encoding->project(-behind, ahead);
    list->push_back(encoding);
  }
  return list;
}

}  // namespace locant::inline v0
