// Relative encodings of a model's layers, with the tables that their weights make of distances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

// Tables W_R·R are functions of weights and distances alone: made for all layers when a call needs
// distances that none had before, and kept. Any number of threads may ask.
class ProjectedEncodings {
 public:
  using Make = std::function<std::shared_ptr<Encoding>()>;
  using List = std::vector<std::shared_ptr<const Encoding>>;

  // A function per layer. Distances beyond `farthest` are those at it.
  ProjectedEncodings(std::vector<Make> layers, int64_t farthest);

  // Encodings with tables for keys that stand up to `behind` tokens before a query and `ahead`
  // after it. Beyond kMostKept they have none, and every call makes its own: those of a long text
  // would take more memory than the model.
  std::shared_ptr<const List> get(int64_t behind, int64_t ahead) const;

  static constexpr int64_t kMostKept = 4096;

 private:
  struct Kept {
    int64_t behind = 0, ahead = 0;
    std::shared_ptr<const List> list;

    bool covers(int64_t b, int64_t a) const { return b <= behind && a <= ahead; }
    void grow_to(int64_t b, int64_t a) {
      behind = std::max(behind, b);
      ahead = std::max(ahead, a);
    }
  };

  std::shared_ptr<const List> make(int64_t behind, int64_t ahead, bool project) const;

  std::vector<Make> layers_;
  int64_t farthest_;
  mutable std::mutex mutex_;
  mutable Kept kept_;   // the largest so far
  mutable Kept plain_;  // without tables
};

}  // namespace locant::inline v0
