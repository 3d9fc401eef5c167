#include "locant/layers/attend.h"

#include <algorithm>
#include <utility>

#include "locant/attention/checks.h"
#include "locant/attention/fused.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "attend";

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

// A window that no two positions can exceed is none: added to a position, it could leave 64 bits.
int64_t window_of(int64_t given) {
  return given >= 4 * kMaxPosition - 1 ? -1 : given;
}

void check_call(const ConstView& q, const ConstView& k, const ConstView& v, const Problem& problem,
                const AttendOptions& options, const View& out) {
  check_types(kScope, q, k, v);
  const int64_t shape[] = {problem.batch, problem.heads, problem.q_len, problem.value_dim};
  check_result(kScope, "out", out, shape, q.dtype, Precision::stored_or_computed);
  if (options.lse) {
    check_result(kScope, "lse", options.lse, std::span(shape, 3), q.dtype, Precision::computed);
    check_apart(kScope, "lse", options.lse, "out", out);
  }
  for (const auto& [name, output] : {std::pair("out", out), std::pair("lse", options.lse)}) {
    check_apart(kScope, name, output, "q", q);
    check_apart(kScope, name, output, "k", k);
    check_apart(kScope, name, output, "v", v);
    check_apart(kScope, name, output, "mask", options.mask);
  }
}

Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k,
                 const Encoding& encoding) {
  encoding.check_problem(problem);
  Prepared prepared = encoding.prepare(problem, q, k);
  validate(prepared.terms, problem.heads, problem.head_dim, problem.value_dim);
  return prepared;
}

}  // namespace

Problem make_problem(const ConstView& q, const ConstView& k, const ConstView& v,
                     const AttendOptions& options) {
  check_shapes(kScope, q, k, v);
  require(options.tiling.rows >= 0 && options.tiling.keys >= 0, kScope,
          "tile sizes must be >= 0, got ", options.tiling.rows, " rows and ", options.tiling.keys,
          " keys");
  require(options.dropout.p >= 0 && options.dropout.p < 1, kScope,
          "dropout must be >= 0 and < 1, got ", options.dropout.p);
  Problem problem;
  problem.batch = q.shape[0];
  problem.heads = q.shape[1];
  problem.kv_heads = k.shape[1];
  problem.q_len = q.shape[2];
  problem.k_len = k.shape[2];
  problem.head_dim = q.shape[3];
  problem.value_dim = v.shape[3];
  problem.causal = options.causal;
  problem.window_left = window_of(options.window_left);
  problem.window_right = window_of(options.window_right);
  problem.mask =
      broadcast_mask(options.mask, {problem.batch, problem.heads, problem.q_len, problem.k_len});
  problem.scale = options.scale;
  problem.dropout = options.dropout;
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
  const bool fused = !own_positions || !prepared.terms.depend_on_positions();
  if (!fused || options.probabilities != nullptr)
    materialized_forward(problem, prepared.q, prepared.k, v, prepared.terms,
                         {.talking_logits = {},
                          .talking_probabilities = {},
                          .keep = false,
                          .by_sequence = options.probabilities},
                         out, options.lse);
  if (fused)
    fused_forward(problem, prepared.q, prepared.k, v, prepared.terms, options.tiling, out,
                  options.lse);
}

Materialized attend_materialized(const ConstView& q, const ConstView& k, const ConstView& v,
                                 const Encoding& encoding, const AttendOptions& options,
                                 const MaterializedOptions& extras, const View& out) {
  const Problem problem = make_problem(q, k, v, options);
  check_call(q, k, v, problem, options, out);
  if (out.size() == 0) return {};
  const Prepared prepared = prepare(problem, q, k, encoding);
  MaterializedOptions all = extras;
  if (options.probabilities != nullptr) all.by_sequence = options.probabilities;
  return materialized_forward(problem, prepared.q, prepared.k, v, prepared.terms, all, out,
                              options.lse);
}

}  // namespace locant::inline v0
