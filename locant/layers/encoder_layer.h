// A layer of an encoder such as BERT's or DeBERTa's, over a batch of sequences of any lengths:
//   a = LayerNorm(x + output(attend(qkv(x))))
//   y = LayerNorm(a + down(activation(up(a))))
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/memory.h"
#include "locant/core/tensor.h"
#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/kernels/activation.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

// Memory that grows and is used again; its contents are undefined.
class LOCANT_API FloatBuffer {
 public:
  // Room for (rows, cols); what was taken before is gone.
  View take(int64_t rows, int64_t cols);
  // The same for what a product writes and the next one reads: rows lie no multiple of 4096 bytes
  // apart.
  View take_inner(int64_t rows, int64_t cols);

 private:
  Block memory_;
};

// What a layer needs between its parts; one serves all layers of a model, not two threads at once.
struct EncoderScratch {
  FloatBuffer wide;    // q, k, v and the attention's output; later the feed-forward's inner rows
  FloatBuffer narrow;  // (T, D)
};

// Plain data: models fill it. Views must outlive it.
struct LOCANT_API EncoderLayer {
  int64_t heads = 1, head_dim = 64;
  Linear qkv;  // D -> 3·H·d: queries of all heads, then keys, then values
  std::shared_ptr<const Encoding> encoding;
  std::optional<double> scale;                      // instead of the encoding's own
  ConstView talking_logits, talking_probabilities;  // (H, H), or empty: heads do not talk
  Linear output;                                    // H·d -> D
  LayerNorm output_norm;
  Linear up;  // D -> I
  Activation activation = Activation::gelu;
  Linear down;  // I -> D
  LayerNorm norm;

  // x, y (T, D): the rows of all sequences, one after the other; y must not be x. Who wants to see
  // the attention gives `probabilities` (AttendOptions).
  void run(const ConstView& x, std::span<const Sequence> sequences, EncoderScratch& scratch,
           const View& y, std::vector<Tensor>* probabilities = nullptr) const;

  // The same with queries and residual from `x` but keys and values from `memory` (T, D).
  void run(const ConstView& x, const ConstView& memory, std::span<const Sequence> sequences,
           EncoderScratch& scratch, const View& y,
           std::vector<Tensor>* probabilities = nullptr) const;

 private:
  void attention(const View& q, const View& kv, std::span<const Sequence> sequences,
                 std::vector<Tensor>* probabilities, const View& out) const;
};

}  // namespace locant::inline v0
