// A layer of Transformer-XL or XLNet: queries come from a piece of text, keys and values from the
// piece and from a memory of what the layer was given before.
//   a = LayerNorm(x + output(attend(queries(x), keys_values([memory | x]))))
//   y = LayerNorm(a + down(activation(up(a))))
// With norm_first:
//   a = x + output(attend(queries(LayerNorm(x)), keys_values(LayerNorm([memory | x]))))
//   y = a + down(activation(up(LayerNorm(a))))
#pragma once

#include <cstdint>

#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/kernels/activation.h"
#include "locant/layers/encoder_layer.h"
#include "locant/layers/heads.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"

namespace locant::inline v0 {

// What a layer needs between its parts; one serves all layers of a model, not two threads at once.
struct RecurrentScratch {
  FloatBuffer normed, queries, keys_values, context, hidden, sum;
};

// Plain data: models fill it. Attention stands between the two halves, where models differ.
struct LOCANT_API RecurrentLayer {
  int64_t heads = 1, head_dim = 64;
  bool norm_first = false;
  Linear queries;      // D -> H·d
  Linear keys_values;  // D -> 2·H·d: keys of all heads, then values
  Linear output;       // H·d -> D
  LayerNorm attention_norm;
  Linear up;  // D -> I
  Activation activation = Activation::gelu;
  Linear down;  // I -> D
  LayerNorm norm;

  // x (T, D) -> (1, H, T, d)
  View project_queries(const ConstView& x, RecurrentScratch& scratch) const;

  // [memory | x] (C, D) -> keys and values, (1, H, C, d) each
  struct KeysValues {
    View keys, values;
  };
  KeysValues project_keys_values(const ConstView& joined, RecurrentScratch& scratch) const;

  // Room for what attention gives, (T, H·d), and the same as heads (1, H, T, d).
  View context(int64_t tokens, RecurrentScratch& scratch) const;
  View heads_of_context(const View& context) const { return heads_of(context, 0, heads, head_dim); }

  // What follows attention. x, y (T, D); y must not be x.
  void finish(const ConstView& x, const ConstView& context, RecurrentScratch& scratch,
              const View& y) const;
};

}  // namespace locant::inline v0
