#include "locant/layers/attend.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "locant/attention/fused.h"
#include "locant/core/overlap.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "attend";

void check_tensor(const char* name, const ConstView& tensor, const char* axes) {
  require(tensor.rank == 4, kScope, name, " must have 4 axes ", axes, ", got shape ",
          shape_text(tensor));
  for (const int64_t extent : tensor.shape)
    require(extent >= 0, kScope, name, " has a negative extent: ", shape_text(tensor));
  require(tensor.data != nullptr || tensor.size() == 0, kScope, name, " must not be null");
}

// A tensor with its name, for messages: "k (2, 4, 10, 32)".
struct Named {
  const char* name;
  const ConstView& tensor;
};

std::ostream& operator<<(std::ostream& text, const Named& named) {
  return text << named.name << ' ' << shape_text(named.tensor);
}

void check_equal(const Named& a, const Named& b, int axis, const char* what) {
  const int64_t x = a.tensor.shape[axis], y = b.tensor.shape[axis];
  require(x == y, kScope, a, " and ", b, " must have the same ", what, ", got ", x, " and ", y);
}

void check_inputs(const ConstView& q, const ConstView& k, const ConstView& v) {
  check_tensor("q", q, "(B, H, Lq, d)");
  check_tensor("k", k, "(B, Hkv, Lk, d)");
  check_tensor("v", v, "(B, Hkv, Lk, dv)");
  check_equal({"k", k}, {"q", q}, 0, "batch size");
  check_equal({"v", v}, {"q", q}, 0, "batch size");
  check_equal({"k", k}, {"q", q}, 3, "head_dim");
  check_equal({"v", v}, {"k", k}, 1, "heads");
  check_equal({"v", v}, {"k", k}, 2, "length");
  const int64_t heads = q.shape[1], kv_heads = k.shape[1];
  require(heads == 0 || (kv_heads > 0 && heads % kv_heads == 0), kScope, Named{"q", q}, " and ",
          Named{"k", k}, ": the heads of q must be a multiple of those of k, got ", heads, " and ",
          kv_heads);
}

// Empty, or one length per batch row, each within the buffer.
void check_lengths(const char* name, std::span<const int64_t> lengths, int64_t batch,
                   const char* tensor, int64_t rows) {
  if (lengths.empty()) return;
  require(static_cast<int64_t>(lengths.size()) == batch, kScope, name, " has ", lengths.size(),
          " entries but the batch size is ", batch);
  for (int64_t b = 0; b < batch; ++b)
    require(lengths[b] >= 0 && lengths[b] <= rows, kScope, name, "[", b, "] must be from 0 to ",
            rows, ", the length of ", tensor, ", got ", lengths[b]);
}

// The batch rows as sequences: whole, or cut to their lengths at either end.
std::vector<Sequence> padded_rows(const ConstView& q, const ConstView& k,
                                  const AttendOptions& options) {
  const int64_t batch = q.shape[0], q_rows = q.shape[2], k_rows = k.shape[2];
  const bool own_k_lengths = !options.k_lengths.empty();
  const std::span<const int64_t> k_lengths = own_k_lengths ? options.k_lengths : options.lengths;
  check_lengths("lengths", options.lengths, batch, "q", q_rows);
  check_lengths(own_k_lengths ? "k_lengths" : "lengths", k_lengths, batch, "k", k_rows);
  require(options.prefix >= 0 && options.prefix <= k_rows, kScope, "prefix must be from 0 to ",
          k_rows, ", the length of k, got ", options.prefix);
  std::vector<Sequence> sequences;
  for (int64_t b = 0; b < batch; ++b) {
    Sequence s;
    s.batch = b;
    s.q_len = options.lengths.empty() ? q_rows : options.lengths[b];
    s.k_len = k_lengths.empty() ? k_rows : k_lengths[b];
    if (options.left_padded) {
      s.q_begin = q_rows - s.q_len;
      s.k_begin = k_rows - s.k_len;
    }
    s.q_start = options.q_start;
    s.k_start = options.k_start;
    s.prefix = std::min(options.prefix, s.k_len);
    sequences.push_back(s);
  }
  return sequences;
}

std::vector<Sequence> given_sequences(const AttendOptions& options) {
  require(options.lengths.empty() && options.k_lengths.empty() && !options.left_padded, kScope,
          "sequences already say which rows belong together: leave out lengths, k_lengths and "
          "left_padded");
  require(options.q_start == 0 && options.k_start == 0 && options.prefix == 0, kScope,
          "sequences have their own q_start, k_start and prefix: leave out the options");
  return {options.sequences.begin(), options.sequences.end()};
}

// The mask as (B, H, Lq, Lk): missing leading axes and axes of extent 1 repeat with stride 0.
ConstView broadcast_mask(const ConstView& mask, const Extents& full) {
  if (!mask) {
    require(mask.rank == 0 || mask.size() == 0, kScope, "mask must not be null");
    return {};
  }
  ConstView out = mask;
  out.rank = 4;
  out.shape = full;
  out.strides = {0, 0, 0, 0};
  for (int axis = 0; axis < mask.rank; ++axis) {
    const int to = axis + 4 - mask.rank;
    require(mask.shape[axis] == full[to] || mask.shape[axis] == 1, kScope, "mask has shape ",
            shape_text(mask), ", which does not broadcast to (B, H, Lq, Lk) = ", shape_text(full));
    if (mask.shape[axis] != 1) out.strides[to] = mask.strides[axis];
  }
  return out;
}

void check_dtypes(const ConstView& q, const ConstView& k, const ConstView& v) {
  require(is_floating(q.dtype), kScope, Named{"q", q}, " is ", name_of(q.dtype),
          " but must be f32, f64, f16 or bf16");
  for (const Named& other : {Named{"k", k}, Named{"v", v}})
    require(other.tensor.dtype == q.dtype, kScope, other, " is ", name_of(other.tensor.dtype),
            " but ", Named{"q", q}, " is ", name_of(q.dtype));
}

void check_output(const char* name, const View& output, std::span<const int64_t> shape) {
  require(std::equal(shape.begin(), shape.end(), output.shape.begin(),
                     output.shape.begin() + output.rank),
          kScope, name, " has shape ", shape_text(output), " but must be ", shape_text(shape));
  require(output.data != nullptr || output.size() == 0, kScope, name, " must not be null");
  for (int axis = 0; axis < output.rank; ++axis)
    require(output.strides[axis] != 0 || output.shape[axis] <= 1 || output.size() == 0, kScope,
            name, " has stride 0 on axis ", axis, " of extent ", output.shape[axis]);
}

// 16-bit inputs are computed in f32: out may be either, lse is f32.
void check_output_dtypes(DType q, const View& out, const View& lse) {
  const DType computing = is_half(q) ? DType::f32 : q;
  require(out.dtype == q || out.dtype == computing, kScope, "out is ", name_of(out.dtype),
          " but q is ", name_of(q), is_half(q) ? ": it must be that or f32" : "");
  require(!lse || lse.dtype == computing, kScope, "lse is ", name_of(lse.dtype), " but must be ",
          name_of(computing), " as q is ", name_of(q));
}

// Results are written while inputs are still read.
void check_apart(const char* name, const View& output, const char* other_name,
                 const ConstView& other) {
  require(!may_overlap(output, other), kScope, name, " overlaps ", other_name, " in memory");
}

void check_call(const ConstView& q, const ConstView& k, const ConstView& v, const Problem& problem,
                const AttendOptions& options, const View& out) {
  check_dtypes(q, k, v);
  const int64_t shape[] = {problem.batch, problem.heads, problem.q_len, problem.value_dim};
  check_output("out", out, shape);
  check_output_dtypes(q.dtype, out, options.lse);
  if (options.lse) {
    check_output("lse", options.lse, std::span(shape, 3));
    check_apart("lse", options.lse, "out", out);
  }
  for (const auto& [name, output] : {std::pair("out", out), std::pair("lse", options.lse)}) {
    check_apart(name, output, "q", q);
    check_apart(name, output, "k", k);
    check_apart(name, output, "v", v);
    check_apart(name, output, "mask", options.mask);
  }
  require(options.tiling.rows >= 0 && options.tiling.keys >= 0, kScope,
          "tile sizes must be >= 0, got ", options.tiling.rows, " rows and ", options.tiling.keys,
          " keys");
}

Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k,
                 const Encoding& encoding) {
  encoding.check_position_axes("q_positions", problem.q_positions);
  encoding.check_position_axes("k_positions", problem.k_positions);
  encoding.check_segments(problem);
  Prepared prepared = encoding.prepare(problem, q, k);
  validate(prepared.terms, problem.heads, problem.head_dim, problem.value_dim);
  return prepared;
}

}  // namespace

Problem make_problem(const ConstView& q, const ConstView& k, const ConstView& v,
                     const AttendOptions& options) {
  check_inputs(q, k, v);
  Problem problem;
  problem.batch = q.shape[0];
  problem.heads = q.shape[1];
  problem.kv_heads = k.shape[1];
  problem.q_len = q.shape[2];
  problem.k_len = k.shape[2];
  problem.head_dim = q.shape[3];
  problem.value_dim = v.shape[3];
  problem.causal = options.causal;
  problem.window_left = options.window_left;
  problem.window_right = options.window_right;
  problem.mask =
      broadcast_mask(options.mask, {problem.batch, problem.heads, problem.q_len, problem.k_len});
  problem.scale = options.scale;
  problem.q_positions = options.q_positions;
  problem.k_positions = options.k_positions;
  problem.q_segments = options.q_segments;
  problem.k_segments = options.k_segments;
  problem.sequences =
      options.sequences.empty() ? padded_rows(q, k, options) : given_sequences(options);
  validate(problem);
  return problem;
}

void attend(const ConstView& q, const ConstView& k, const ConstView& v, const Encoding& encoding,
            const AttendOptions& options, const View& out) {
  const Problem problem = make_problem(q, k, v, options);
  check_call(q, k, v, problem, options, out);
  if (out.size() == 0) return;
  const Prepared prepared = prepare(problem, q, k, encoding);
  const bool own_positions = problem.q_positions || problem.k_positions;
  if (own_positions && prepared.terms.depend_on_positions()) {
    materialized_forward(problem, prepared.q, prepared.k, v, prepared.terms,
                         {.talking_logits = {}, .talking_probabilities = {}, .keep = false}, out,
                         options.lse);
  } else {
    fused_forward(problem, prepared.q, prepared.k, v, prepared.terms, options.tiling, out,
                  options.lse);
  }
}

Materialized attend_materialized(const ConstView& q, const ConstView& k, const ConstView& v,
                                 const Encoding& encoding, const AttendOptions& options,
                                 const MaterializedOptions& extras, const View& out) {
  const Problem problem = make_problem(q, k, v, options);
  check_call(q, k, v, problem, options, out);
  if (out.size() == 0) return {};
  const Prepared prepared = prepare(problem, q, k, encoding);
  return materialized_forward(problem, prepared.q, prepared.k, v, prepared.terms, extras, out,
                              options.lse);
}

}  // namespace locant::inline v0
