#include "locant/layers/recurrent_layer.h"

namespace locant::inline v0 {
namespace {

// x, or LayerNorm(x) if the norm comes first.
ConstView input_of(const RecurrentLayer& layer, const ConstView& x, RecurrentScratch& scratch) {
  if (!layer.norm_first) return x;
  const View normed = scratch.normed.take(x.shape[0], x.shape[1]);
  layer.attention_norm.run(x, normed);
  return normed;
}

}  // namespace

View RecurrentLayer::project_queries(const ConstView& x, RecurrentScratch& scratch) const {
  const View q = scratch.queries.take(x.shape[0], heads * head_dim);
  queries.run(input_of(*this, x, scratch), q);
  return heads_of(q, 0, heads, head_dim);
}

RecurrentLayer::KeysValues RecurrentLayer::project_keys_values(const ConstView& joined,
                                                               RecurrentScratch& scratch) const {
  const View kv = scratch.keys_values.take(joined.shape[0], 2 * heads * head_dim);
  keys_values.run(input_of(*this, joined, scratch), kv);
  return {heads_of(kv, 0, heads, head_dim), heads_of(kv, heads * head_dim, heads, head_dim)};
}

View RecurrentLayer::context(int64_t tokens, RecurrentScratch& scratch) const {
  return scratch.context.take(tokens, heads * head_dim);
}

void RecurrentLayer::finish(const ConstView& x, const ConstView& context, RecurrentScratch& scratch,
                            const View& y) const {
  const View hidden = scratch.hidden.take_inner(x.shape[0], up.outputs());
  const View sum = scratch.sum.take(x.shape[0], x.shape[1]);
  if (norm_first) {
    output.run(context, sum, {.residual = x});
    norm.run(sum, y);
    up.run(y, hidden, {.activation = activation});
    down.run(hidden, y, {.residual = sum});
    return;
  }
  output.run(context, sum, {.residual = x, .norm = &attention_norm});
  up.run(sum, hidden, {.activation = activation});
  down.run(hidden, y, {.residual = sum, .norm = &norm});
}

}  // namespace locant::inline v0
