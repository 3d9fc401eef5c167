#include "locant/models/t5/layer.h"

#include "locant/layers/attend.h"
#include "locant/layers/heads.h"
#include "locant/models/kv_cache.h"

namespace locant::inline v0 {
namespace {

View normed(const RmsNorm& norm, const ConstView& x, EncoderScratch& scratch) {
  const View out = scratch.narrow.take(x.shape[0], x.shape[1]);
  norm.run(x, out);
  return out;
}

// All (1, H, rows, d); nothing scales the products.
void attend_unscaled(const View& q, const View& k, const View& v, const Encoding& encoding,
                     std::span<const Sequence> sequences, bool causal, const View& out,
                     std::vector<Tensor>* probabilities = nullptr) {
  AttendOptions options;
  options.sequences = sequences;
  options.causal = causal;
  options.scale = 1.0;
  options.probabilities = probabilities;
  attend(q, k, v, encoding, options, out);
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
                          EncoderScratch& scratch, std::vector<Tensor>* probabilities,
                          const View& y) const {
  View rows, context;
  project(x, scratch, rows, context);
  const int64_t width = heads * head_dim;
  attend_unscaled(heads_of(rows, 0, heads, head_dim), heads_of(rows, width, heads, head_dim),
                  heads_of(rows, 2 * width, heads, head_dim), *encoding, sequences, false,
                  heads_of(context, 0, heads, head_dim), probabilities);
  output.run(context, y, {.residual = x});
}

void T5SelfAttention::run_cached(const ConstView& x, std::span<const Sequence> sequences,
                                 const View& keys, const View& values, EncoderScratch& scratch,
                                 const View& y) const {
  const int64_t width = heads * head_dim;
  View rows, context;
  project(x, scratch, rows, context);
  const View k = heads_of(rows, width, heads, head_dim);
  const View v = heads_of(rows, 2 * width, heads, head_dim);
  for (const Sequence& s : sequences) {
    copy_rows(k, s.q_begin, s.q_len, keys, s.k_begin + s.k_len - s.q_len);
    copy_rows(v, s.q_begin, s.q_len, values, s.k_begin + s.k_len - s.q_len);
  }
  attend_unscaled(heads_of(rows, 0, heads, head_dim), keys, values, *encoding, sequences, true,
                  heads_of(context, 0, heads, head_dim));
  output.run(context, y, {.residual = x});
}

void T5CrossAttention::run(const ConstView& x, std::span<const Sequence> sequences, const View& kv,
                           EncoderScratch& scratch, const View& y) const {
  const int64_t tokens = x.shape[0], width = heads * head_dim;
  const View wide = scratch.wide.take(2 * tokens, width);
  const View q = view(wide.at<float>(), {tokens, width});
  const View context = view(wide.at<float>(tokens), {tokens, width});
  query.run(normed(norm, x, scratch), q);
  attend_unscaled(heads_of(q, 0, heads, head_dim), heads_of(kv, 0, heads, head_dim),
                  heads_of(kv, width, heads, head_dim), *encoding, sequences, false,
                  heads_of(context, 0, heads, head_dim));
  output.run(context, y, {.residual = x});
}

void T5FeedForward::run(const ConstView& x, EncoderScratch& scratch, const View& y) const {
  const int64_t tokens = x.shape[0], inner = up.outputs();
  const View rows = normed(norm, x, scratch);
  const View hidden = scratch.wide.take_inner(tokens, inner);
  up.run(rows, hidden, {.activation = activation, .factor = gate ? &gate : nullptr});
  down.run(hidden, y, {.residual = x});
}

}  // namespace locant::inline v0
