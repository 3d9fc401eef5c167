#include "locant/layers/encoder_layer.h"

#include <algorithm>

#include "locant/layers/attend.h"
#include "locant/layers/heads.h"

namespace locant::inline v0 {
namespace {

// Between the beginnings of rows of `width` floats. Rows a multiple of 4096 bytes apart meet in the
// same set of a first-level cache, and a product reads eight of them side by side.
int64_t row_distance(int64_t width) {
  return width % 1024 == 0 ? width + 32 : width;
}

}  // namespace

View FloatBuffer::take(int64_t rows, int64_t cols) {
  const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(float);
  if (bytes > memory_.bytes()) {
    memory_ = Block();
    memory_ = Block(bytes);
  }
  return view(reinterpret_cast<float*>(memory_.data()), {rows, cols});
}

View FloatBuffer::take_inner(int64_t rows, int64_t cols) {
  return columns(take(rows, row_distance(cols)), 0, cols);
}

void EncoderLayer::attention(const View& q, const View& kv, std::span<const Sequence> sequences,
                             std::vector<Tensor>* probabilities, const View& out) const {
  const int64_t width = heads * head_dim;
  const View queries = heads_of(q, 0, heads, head_dim);
  const View keys = heads_of(kv, width, heads, head_dim);
  const View values = heads_of(kv, 2 * width, heads, head_dim);
  const View result = heads_of(out, 0, heads, head_dim);
  AttendOptions options;
  options.sequences = sequences;
  options.scale = scale;
  options.probabilities = probabilities;
  if (talking_logits || talking_probabilities) {
    attend_materialized(queries, keys, values, *encoding, options,
                        {.talking_logits = talking_logits,
                         .talking_probabilities = talking_probabilities,
                         .keep = false},
                        result);
  } else {
    attend(queries, keys, values, *encoding, options, result);
  }
}

void EncoderLayer::run(const ConstView& x, std::span<const Sequence> sequences,
                       EncoderScratch& scratch, const View& y,
                       std::vector<Tensor>* probabilities) const {
  run(x, x, sequences, scratch, y, probabilities);
}

void EncoderLayer::run(const ConstView& x, const ConstView& memory,
                       std::span<const Sequence> sequences, EncoderScratch& scratch,
                       const View& y, std::vector<Tensor>* probabilities) const {
  const int64_t tokens = x.shape[0], width = heads * head_dim, inner = up.outputs();
  const bool own = memory.data == x.data;
  const int64_t parts = own ? 4 : 7;  // q, k, v and the context; q apart from the memory's k and v
  const int64_t distance = row_distance(inner);
  const View wide = scratch.wide.take(tokens, std::max(parts * width, distance));
  const auto part = [&](int64_t begin, int64_t count) {
    return view(wide.at<float>() + tokens * width * begin, {tokens, width * count});
  };
  const View kv = part(0, 3), context = part(3, 1);
  qkv.run(memory, kv);
  View q = kv;
  if (!own) {
    q = part(4, 3);
    qkv.run(x, q);
  }
  attention(columns(q, 0, width), kv, sequences, probabilities, context);
  const View a = scratch.narrow.take(tokens, y.shape[1]);
  output.run(context, a, {.residual = x, .norm = &output_norm});

  const View hidden = columns(view(wide.at<float>(), {tokens, distance}), 0, inner);
  up.run(a, hidden, {.activation = activation});
  down.run(hidden, y, {.residual = a, .norm = &norm});
}

}  // namespace locant::inline v0
