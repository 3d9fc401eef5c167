// Memories of Transformer-XL and XLNet: past inputs of every layer, which stand before the tokens of
// a call as keys and values.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/view.h"
#include "locant/layers/encoder_layer.h"
#include "locant/models/batch.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

// Which rows of [memory | x] a call hands on: the last mem_len.
struct MemoryRule {
  int64_t mem_len = 0;    // 0: all
  int64_t reuse_len = 0;  // of x only the first so many rows; 0: all
};

class Memories {
 public:
  // What the input has, checked; without any, `zeros` rows of zeros before each sequence.
  Memories(const ModelInput& input, const ModelInfo& info, const Batch& batch, int64_t zeros);

  // The batch's sequences with their memories before them: queries are rows of x, keys of join().
  const std::vector<Sequence>& sequences() const { return sequences_; }

  int64_t rows() const { return rows_; }  // of all memories and sequences
  int64_t longest() const;                // memory and sequence

  // Of each row, `fill` in memories, else what `tokens` (T) holds.
  std::vector<int64_t> join(const std::vector<int64_t>& tokens, int64_t fill) const;

  // [memory | x] of a layer's input x (T, D), sequence after sequence; x itself if there are none.
  ConstView join(int64_t layer, const ConstView& x, FloatBuffer& buffer) const;

  // Writes the layer's next memory into mems[n] (layers, M, D) of every sequence.
  void keep(int64_t layer, const ConstView& x, const MemoryRule& rule,
            std::vector<Tensor>& mems) const;

 private:
  const ModelInfo& info_;
  std::vector<ConstView> mems_;      // (layers, M, D) each; empty: zeros
  std::vector<int64_t> lengths_;     // M of each
  std::vector<Sequence> sequences_;
  int64_t rows_ = 0;
};

}  // namespace locant::inline v0
