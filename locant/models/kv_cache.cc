#include "locant/models/kv_cache.h"

#include <algorithm>
#include <utility>

#include "locant/core/executor.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kSpareRows = 64;
constexpr int64_t kRowsPerItem = 256;

}  // namespace

KvCache::KvCache(int64_t layers, int64_t sequences, int64_t heads, int64_t head_dim, bool unrotated)
    : heads_(heads),
      head_dim_(head_dim),
      parts_(unrotated ? 3 : 2),
      buffers_(static_cast<size_t>(layers * parts_)),
      runs_(static_cast<size_t>(sequences)) {}

View KvCache::as_view(const Buffer& buffer, int64_t rows) const {
  return view(buffer.get(), {1, heads_, rows, head_dim_});
}

View KvCache::part(int64_t layer, int64_t index) const {
  return as_view(buffers_[layer * parts_ + index], rows_);
}

void KvCache::reserve(std::span<const int64_t> lengths) {
  const bool fits =
      std::equal(lengths.begin(), lengths.end(), runs_.begin(),
                 [](int64_t length, const Run& run) { return length <= run.capacity; });
  std::vector<Run> runs = runs_;
  for (size_t n = 0; n < runs.size(); ++n) runs[n].length = lengths[n];
  if (!fits) {
    int64_t rows = 0;
    for (Run& run : runs) {
      run.begin = rows;
      run.capacity = run.length == 0 ? 0 : run.length + run.length / 2 + kSpareRows;
      rows += run.capacity;
    }
    // A layer at a time, so that no more than one is there twice.
    for (Buffer& buffer : buffers_) {
      auto grown = std::make_unique_for_overwrite<float[]>(  // NOLINT
          static_cast<size_t>(heads_ * rows * head_dim_));
      for (size_t n = 0; n < runs.size(); ++n)
        copy_rows(as_view(buffer, rows_), runs_[n].begin, std::min(runs_[n].length, runs[n].length),
                  as_view(grown, rows), runs[n].begin);
      buffer = std::move(grown);
    }
    rows_ = rows;
  }
  runs_ = std::move(runs);
}

void copy_rows(const ConstView& source, int64_t from, int64_t count, const View& target,
               int64_t to) {
  if (count == 0) return;
  const int64_t heads = source.shape[1], width = source.shape[3];
  const int64_t items = (count + kRowsPerItem - 1) / kRowsPerItem;
  executor()->parallel_for(items, [&](int64_t item, int) {
    const int64_t end = std::min(count, (item + 1) * kRowsPerItem);
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t row = item * kRowsPerItem; row < end; ++row)
        std::copy_n(source.at<float>(0, head, from + row), width,
                    target.at<float>(0, head, to + row));
  });
}

}  // namespace locant::inline v0
