#include "locant/layers/two_stream.h"

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "locant/core/executor.h"
#include "locant/core/overlap.h"
#include "locant/kernels/matmul.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "two_stream";

// (B | 1, ...) with these further extents, or empty.
void check_shape(const char* name, const ConstView& x, int64_t batch,
                 std::span<const int64_t> extents) {
  if (!x) return;
  const bool fits = x.rank == static_cast<int>(extents.size()) + 1 &&
                    (x.shape[0] == batch || x.shape[0] == 1) &&
                    std::equal(extents.begin(), extents.end(), x.shape.begin() + 1);
  require(fits, kScope, name, " has shape ", shape_text(x), " but must be (", batch, " or 1, ",
          shape_text(extents).substr(1));
}

void check_mask(const char* name, const ConstView& mask) {
  require(!mask || mask.dtype != DType::i64, kScope, name, " must be bool or floating point, got ",
          name_of(mask.dtype));
}

// Both results, before either is computed.
void check_outputs(const TwoStreamInputs& in, const View& out_h, const View& out_g) {
  for (const auto& [name, out, q] :
       {std::tuple("out_h", out_h, in.q_h), std::tuple("out_g", out_g, in.q_g)}) {
    const Extents shape = {q.shape[0], q.shape[1], q.shape[2], in.v.shape[3]};
    require(out.rank == 4 && out.shape == shape && out.dtype == q.dtype, kScope, name, " is ",
            name_of(out.dtype), " ", shape_text(out), " but must be ", name_of(q.dtype), " ",
            shape_text(shape));
  }
  // out_g is complete when the content stream still reads.
  for (const auto& [name, x] : {std::pair("q_h", in.q_h), std::pair("k", in.k),
                                std::pair("v", in.v), std::pair("out_h", ConstView(out_h))})
    require(!may_overlap(out_g, x), kScope, "out_g overlaps ", name, " in memory");
}

void check(const TwoStreamInputs& in, const TwoStreamOptions& options) {
  for (const auto& [name, x] : {std::pair("q_h", in.q_h), std::pair("q_g", in.q_g),
                                std::pair("k", in.k), std::pair("v", in.v)})
    require(x.rank == 4, kScope, name, " must have 4 axes, got shape ", shape_text(x));
  const int64_t batch = in.q_h.shape[0], length = in.q_h.shape[2], targets = in.q_g.shape[2];
  require(in.k.shape[2] >= length, kScope, "k has ", in.k.shape[2], " rows, fewer than the ",
          length, " of q_h: memory comes before them, nothing after");
  require(in.q_g.shape[0] == batch && in.q_g.shape[1] == in.q_h.shape[1] &&
              in.q_g.shape[3] == in.q_h.shape[3] && in.q_g.dtype == in.q_h.dtype,
          kScope, "q_g is ", name_of(in.q_g.dtype), " ", shape_text(in.q_g), " but q_h is ",
          name_of(in.q_h.dtype), " ", shape_text(in.q_h), "; only their lengths may differ");
  const int64_t pairs[] = {length, length}, rows[] = {length}, mapping[] = {targets, length};
  check_shape("perm_mask", options.perm_mask, batch, pairs);
  check_shape("input_mask", options.input_mask, batch, rows);
  check_shape("target_mapping", options.target_mapping, batch, mapping);
  check_shape("segments", options.segments, batch, rows);
  check_mask("perm_mask", options.perm_mask);
  check_mask("input_mask", options.input_mask);
  require(!options.segments || options.segments.dtype == DType::i64, kScope,
          "segments must be i64, got ", name_of(options.segments.dtype));
  if (!options.target_mapping) {
    require(targets == length, kScope, "without target_mapping q_g needs the length of q_h, ",
            length, ", got ", targets);
    return;
  }
  require(
      options.target_mapping.dtype != DType::boolean && options.target_mapping.dtype != DType::i64,
      kScope, "target_mapping must be floating point, got ", name_of(options.target_mapping.dtype));
  require(in.q_g.dtype == DType::f32 || in.q_g.dtype == DType::f64, kScope,
          "target_mapping needs f32 or f64 tensors, got ", name_of(in.q_g.dtype));
}

// Who sees whom, (B | 1, 1, L, M + L).
class Visible {
 public:
  Visible(const TwoStreamOptions& options, int64_t length, int64_t keys)
      : length_(length), keys_(keys), memory_(keys - length) {
    const ConstView &perm = options.perm_mask, &padding = options.input_mask;
    if (!perm && !padding) return;
    batch_ = std::max(perm ? perm.shape[0] : 1, padding ? padding.shape[0] : 1);
    pairs_ = std::make_unique<bool[]>(batch_ * length * keys);
    executor()->parallel_for(batch_ * length, [&](int64_t row, int) {
      const int64_t b = row / length, i = row % length;
      const auto hides = [b](const ConstView& mask, auto... at) {
        return mask && element(mask, mask.shape[0] == 1 ? 0 : b, at...) != 0;
      };
      bool* out = &pairs_[row * keys];
      std::fill_n(out, memory_, true);
      for (int64_t j = 0; j < length; ++j)
        out[memory_ + j] = !hides(perm, i, j) && !hides(padding, j);
    });
  }

  void reopen_own_positions() {
    if (pairs_ == nullptr) return;
    for (int64_t row = 0; row < batch_ * length_; ++row)
      pairs_[row * keys_ + memory_ + row % length_] = true;
  }

  ConstView mask() const {
    if (pairs_ == nullptr) return {};
    return view(static_cast<const bool*>(pairs_.get()), {batch_, 1, length_, keys_});
  }

 private:
  int64_t length_, keys_, memory_, batch_ = 0;
  std::unique_ptr<bool[]> pairs_;
};

// out[b,h] = M[b]·x[b,h], M (B | 1, rows, cols), x (B, H, cols, d), out (B, H, rows, d).
void map_rows(const ConstView& mapping, bool transposed, const ConstView& x, const View& out) {
  const int row_axis = transposed ? 2 : 1, col_axis = transposed ? 1 : 2;
  const auto matrix = [](const auto& from, int64_t offset, Extents shape, Extents strides) {
    auto out_view = from;
    using Byte = std::conditional_t<std::is_same_v<std::decay_t<decltype(from)>, View>, std::byte,
                                    const std::byte>;
    out_view.data =
        static_cast<Byte*>(from.data) + offset * static_cast<int64_t>(size_of(from.dtype));
    out_view.rank = 2;
    out_view.shape = shape;
    out_view.strides = strides;
    return out_view;
  };
  const int64_t rows = mapping.shape[row_axis], cols = mapping.shape[col_axis], d = x.shape[3];
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      matmul(matrix(mapping, mapping.shape[0] == 1 ? 0 : b * mapping.strides[0], {rows, cols, 1, 1},
                    {mapping.strides[row_axis], mapping.strides[col_axis], 0, 0}),
             matrix(x, b * x.strides[0] + h * x.strides[1], {d, cols, 1, 1},
                    {x.strides[3], x.strides[2], 0, 0}),
             matrix(out, b * out.strides[0] + h * out.strides[1], {rows, d, 1, 1},
                    {out.strides[2], out.strides[3], 0, 0}));
}

// A new (B, H, L, d) of x's type.
struct Buffer {
  Buffer(DType dtype, const Extents& shape)
      : memory(shape[0] * shape[1] * shape[2] * shape[3] * size_of(dtype)),
        view(memory.data(), dtype, shape) {}
  std::vector<std::byte> memory;
  View view;
};

}  // namespace

void two_stream(const TwoStreamInputs& in, const Encoding& encoding,
                const TwoStreamOptions& options, const View& out_h, const View& out_g) {
  check(in, options);
  check_outputs(in, out_h, out_g);
  const auto [B, H, L, d] = in.q_h.shape;
  const int64_t keys = in.k.shape[2], memory = keys - L;
  AttendOptions attending;
  attending.q_start = memory;
  attending.causal = options.causal;
  attending.window_left = options.window_left;
  attending.scale = options.scale;
  attending.tiling = options.tiling;
  std::vector<int64_t> k_segments;
  if (options.segments) {
    const int64_t rows = options.segments.shape[0];
    k_segments.assign(rows * keys, 0);
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t j = 0; j < L; ++j)
        k_segments[b * keys + memory + j] = *options.segments.at<int64_t>(b, j);
    attending.q_segments = options.segments;
    attending.k_segments = view(k_segments.data(), {rows, keys});
  }

  Visible visible(options, L, keys);
  attending.mask = visible.mask();
  if (options.target_mapping) {
    const Buffer q(in.q_g.dtype, {B, H, L, d});
    const Buffer out(in.q_g.dtype, {B, H, L, in.v.shape[3]});
    map_rows(options.target_mapping, /*transposed=*/true, in.q_g, q.view);
    attend(q.view, in.k, in.v, encoding, attending, out.view);
    map_rows(options.target_mapping, /*transposed=*/false, out.view, out_g);
  } else {
    attend(in.q_g, in.k, in.v, encoding, attending, out_g);
  }
  visible.reopen_own_positions();
  attend(in.q_h, in.k, in.v, encoding, attending, out_h);
}

}  // namespace locant::inline v0
