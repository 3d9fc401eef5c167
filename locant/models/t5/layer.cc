#include "locant/models/t5/layer.h"

#include <algorithm>

#include "locant/layers/attend.h"
#include "locant/layers/heads.h"

namespace locant::inline v0 {
namespace {

View normed(const RmsNorm& norm, const ConstView& x, EncoderScratch& scratch) {
  const View out = scratch.narrow.take(x.shape[0], x.shape[1]);
  norm.run(x, out);
  return out;
}

// Keys from column `begin` of kv on, values after them; nothing scales them.
void attend_rows(const View& q, const View& kv, int64_t begin, const Encoding& encoding,
                 int64_t heads, int64_t dim, std::span<const Sequence> sequences, bool causal,
                 const View& out) {
  AttendOptions options;
  options.sequences = sequences;
  options.causal = causal;
  options.scale = 1.0;
  attend(heads_of(q, 0, heads, dim), heads_of(kv, begin, heads, dim),
         heads_of(kv, begin + heads * dim, heads, dim), encoding, options,
         heads_of(out, 0, heads, dim));
}

}  // namespace

// qkv (T, 3·H·d) and room for the context (T, H·d), one after the other.
void T5SelfAttention::project(const ConstView& x, EncoderScratch& scratch, View& qkv_rows,
                              View& context) const {
  const int64_t tokens = x.shape[0], width = heads * head_dim;
  const View wide = scratch.wide.take(tokens, 4 * width);
  qkv_rows = view(wide.at<float>(), {tokens, 3 * width});
  context = view(wide.at<float>() + tokens * 3 * width, {tokens, width});
  qkv.run(normed(norm, x, scratch), qkv_rows);
}

void T5SelfAttention::run(const ConstView& x, std::span<const Sequence> sequences,
                          EncoderScratch& scratch, const View& y) const {
  View rows, context;
  project(x, scratch, rows, context);
  attend_rows(rows, rows, heads * head_dim, *encoding, heads, head_dim, sequences, false, context);
  output.run(context, y, {.residual = x});
}

void T5SelfAttention::run_cached(const ConstView& x, std::span<const Sequence> sequences,
                                 const View& cache, EncoderScratch& scratch, const View& y) const {
  const int64_t width = heads * head_dim;
  View rows, context;
  project(x, scratch, rows, context);
  for (const Sequence& s : sequences)
    for (int64_t i = 0; i < s.q_len; ++i)
      std::copy_n(rows.at<float>(s.q_begin + i, width), 2 * width,
                  cache.at<float>(s.k_begin + s.k_len - s.q_len + i));
  attend_rows(rows, cache, 0, *encoding, heads, head_dim, sequences, true, context);
  output.run(context, y, {.residual = x});
}

void T5CrossAttention::run(const ConstView& x, std::span<const Sequence> sequences, const View& kv,
                           EncoderScratch& scratch, const View& y) const {
  const int64_t tokens = x.shape[0], width = heads * head_dim;
  const View wide = scratch.wide.take(2 * tokens, width);
  const View q = view(wide.at<float>(), {tokens, width});
  const View context = view(wide.at<float>(tokens), {tokens, width});
  query.run(normed(norm, x, scratch), q);
  attend_rows(q, kv, 0, *encoding, heads, head_dim, sequences, false, context);
  output.run(context, y, {.residual = x});
}

void T5FeedForward::run(const ConstView& x, EncoderScratch& scratch, const View& y) const {
  const int64_t tokens = x.shape[0], inner = up.outputs();
  const View rows = normed(norm, x, scratch);
  const View wide = scratch.wide.take((gate ? 2 : 1) * tokens, inner);
  const View hidden = view(wide.at<float>(), {tokens, inner});
  ConstView factor;
  if (gate) {
    const View gates = view(wide.at<float>(tokens), {tokens, inner});
    gate.run(rows, gates);
    factor = gates;
  }
  up.run(rows, hidden, {.activation = activation, .factor = factor});
  down.run(hidden, y, {.residual = x});
}

}  // namespace locant::inline v0
