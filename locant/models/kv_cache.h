// Keys and values of past tokens, for all layers and sequences of a generate() call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/core/view.h"

namespace locant::inline v0 {

// Every layer has buffers (1, Hkv, rows, d) in which each sequence owns a run of rows, so that one
// call of attend() serves all sequences, and a head's keys are read as one stream.
class KvCache {
 public:
  // With `unrotated`, a second buffer of keys as they came, before any rotation.
  KvCache(int64_t layers, int64_t sequences, int64_t heads, int64_t head_dim, bool unrotated);

  // Room for lengths[n] rows of sequence n, whose rows so far stay; their place may change.
  // Sequences of length 0 have ended: their memory goes when others need more.
  void reserve(std::span<const int64_t> lengths);

  bool keeps_unrotated() const { return parts_ == 3; }

  // The first row of a sequence.
  int64_t begin(int64_t sequence) const { return runs_[sequence].begin; }

  View keys(int64_t layer) const { return part(layer, 0); }
  View values(int64_t layer) const { return part(layer, 1); }
  View unrotated_keys(int64_t layer) const { return part(layer, 2); }

 private:
  struct Run {
    int64_t begin = 0, length = 0, capacity = 0;
  };
  using Buffer = std::unique_ptr<float[]>;  // NOLINT: a vector would write zeros first

  View part(int64_t layer, int64_t index) const;
  View as_view(const Buffer& buffer, int64_t rows) const;

  int64_t heads_, head_dim_, rows_ = 0;
  int64_t parts_;                // buffers of a layer
  std::vector<Buffer> buffers_;  // (layers·parts)
  std::vector<Run> runs_;
};

// Rows [from, from + count) of all heads to rows [to, to + count): both (1, H, rows, d) of
// contiguous elements in a row.
void copy_rows(const ConstView& source, int64_t from, int64_t count, const View& target,
               int64_t to);

}  // namespace locant::inline v0
