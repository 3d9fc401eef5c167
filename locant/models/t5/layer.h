// The parts of a T5 layer, over the rows of a batch of sequences of any lengths. Each is
//   y = x + f(norm(x))        x, y (T, D); y must not be x
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/core/tensor.h"
#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/layers/encoder_layer.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

// f = output(attend(qkv)); queries and keys are not scaled.
struct T5SelfAttention {
  int64_t heads = 1, head_dim = 64;
  RmsNorm norm;
  Linear qkv;  // D -> 3·H·d
  std::shared_ptr<const Encoding> encoding;
  Linear output;  // H·d -> D

  // Every token sees its whole sequence.
  void run(const ConstView& x, std::span<const Sequence> sequences, EncoderScratch& scratch,
           std::vector<Tensor>* probabilities, const View& y) const;

  // Causal, with keys and values (1, H, rows, d) of tokens before: those of x are written there
  // first, where the sequences say that their last keys are.
  void run_cached(const ConstView& x, std::span<const Sequence> sequences, const View& keys,
                  const View& values, EncoderScratch& scratch, const View& y) const;

 private:
  void project(const ConstView& x, EncoderScratch& scratch, View& qkv_rows, View& context) const;
};

// The same with keys and values of an encoder's rows, and no bias.
struct T5CrossAttention {
  int64_t heads = 1, head_dim = 64;
  RmsNorm norm;
  Linear query;      // D -> H·d
  Linear key_value;  // D -> 2·H·d, of the encoder's rows: once for all steps
  std::shared_ptr<const Encoding> encoding;
  Linear output;  // H·d -> D

  // kv (rows, 2·H·d) is what key_value made.
  void run(const ConstView& x, std::span<const Sequence> sequences, const View& kv,
           EncoderScratch& scratch, const View& y) const;
};

// f = down(activation(up)), or f = down(activation(up)·gate).
struct T5FeedForward {
  RmsNorm norm;
  Linear up, gate;  // D -> I; there may be no gate
  Activation activation = Activation::relu;
  Linear down;  // I -> D

  void run(const ConstView& x, EncoderScratch& scratch, const View& y) const;
};

struct T5EncoderLayer {
  T5SelfAttention self;
  T5FeedForward feed;
};

struct T5DecoderLayer {
  T5SelfAttention self;
  T5CrossAttention cross;
  T5FeedForward feed;
};

}  // namespace locant::inline v0
