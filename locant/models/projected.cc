#include "locant/models/projected.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace locant::inline v0 {
namespace {

// Texts that grow token by token need a new table only when their length has doubled.
int64_t rounded_up(int64_t distance) {
  constexpr uint64_t kLeast = 128;
  if (distance == 0) return 0;
  return static_cast<int64_t>(std::bit_ceil(std::max(kLeast, static_cast<uint64_t>(distance))));
}

}  // namespace

ProjectedEncodings::ProjectedEncodings(std::vector<Make> layers, int64_t farthest)
    : layers_(std::move(layers)), farthest_(farthest) {}

std::shared_ptr<const ProjectedEncodings::List> ProjectedEncodings::get(int64_t behind,
                                                                        int64_t ahead) const {
  behind = std::min(behind, farthest_);
  ahead = std::min(ahead, farthest_);
  const std::lock_guard lock(mutex_);
  if (std::max(behind, ahead) > kMostKept) {
    if (plain_ == nullptr) plain_ = make(0, 0, false);
    return plain_;
  }
  if (kept_.list == nullptr || kept_.behind < behind || kept_.ahead < ahead) {
    kept_.behind = std::max(kept_.behind, std::min(rounded_up(behind), farthest_));
    kept_.ahead = std::max(kept_.ahead, std::min(rounded_up(ahead), farthest_));
    kept_.list = make(kept_.behind, kept_.ahead, true);
  }
  return kept_.list;
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
