// attend() by plain loops: each sequence becomes dense copies, a matrix of allowed pairs and a call
// of the encoding's reference. Any strides and element types; nothing shared with the kernels.
#include <cmath>
#include <limits>

#include "locant/core/error.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {
namespace {

void store(const View& view, double value, int64_t a, int64_t b, int64_t c, int64_t e = 0) {
  if (view.dtype == DType::f64)
    *view.at<double>(a, b, c, e) = value;
  else
    *view.at<float>(a, b, c, e) = static_cast<float>(value);
}

void require_output(const View& view, const char* name, std::span<const int64_t> shape) {
  require(view.dtype == DType::f64 || view.dtype == DType::f32, "attend_reference", name,
          " must be f32 or f64, got ", name_of(view.dtype));
  bool same = view.rank == static_cast<int>(shape.size());
  for (size_t axis = 0; same && axis < shape.size(); ++axis) same = view.shape[axis] == shape[axis];
  require(same, "attend_reference", name, " must have shape ", shape_text(shape), ", got ",
          shape_text(view));
}

// mask[b,h,i,j] with numpy's broadcasting: axes are matched from the last one, extent 1 repeats.
double mask_at(const ConstView& mask, int64_t b, int64_t h, int64_t i, int64_t j) {
  const Extents wanted = {b, h, i, j};
  Extents index = {0, 0, 0, 0};
  for (int axis = 0; axis < mask.rank; ++axis)
    if (mask.shape[axis] > 1) index[axis] = wanted[axis + 4 - mask.rank];
  return element(mask, index[0], index[1], index[2], index[3]);
}

// Positions of rows [begin, begin + rows) with `axes` numbers each: the given ids, or start, start
// + 1, ...; a position of one number stands for all axes.
std::vector<int64_t> positions_of(const ConstView& ids, int64_t batch, int64_t begin, int64_t rows,
                                  int64_t start, int64_t axes) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t axis = 0; axis < axes; ++axis)
      out.push_back(!ids ? start + i
                         : *ids.at<int64_t>(ids.shape[0] > 1 ? batch : 0, begin + i,
                                            ids.rank == 3 ? axis : 0));
  return out;
}

// Segment ids of rows [begin, begin + rows), or none.
std::vector<int64_t> segments_of(const ConstView& ids, int64_t batch, int64_t begin, int64_t rows) {
  std::vector<int64_t> out;
  if (!ids) return out;
  for (int64_t i = 0; i < rows; ++i)
    out.push_back(*ids.at<int64_t>(ids.shape[0] > 1 ? batch : 0, begin + i));
  return out;
}

template <class Real>
std::vector<Real> dense(const ConstView& view) {
  std::vector<Real> out;
  out.reserve(view.size());
  for (int64_t a = 0; a < view.shape[0]; ++a)
    for (int64_t b = 0; b < view.shape[1]; ++b)
      for (int64_t c = 0; c < view.shape[2]; ++c)
        for (int64_t e = 0; e < view.shape[3]; ++e)
          out.push_back(static_cast<Real>(element(view, a, b, c, e)));
  return out;
}

// Rows [begin, begin + rows) of one batch entry of (B, H, L, d) -> (H, rows, d).
template <class Real>
std::vector<Real> dense_rows(const ConstView& view, int64_t batch, int64_t begin, int64_t rows) {
  std::vector<Real> out;
  out.reserve(view.shape[1] * rows * view.shape[3]);
  for (int64_t h = 0; h < view.shape[1]; ++h)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < view.shape[3]; ++c)
        out.push_back(static_cast<Real>(element(view, batch, h, begin + i, c)));
  return out;
}

template <class Real>
ReferenceProblem<Real> problem_of(const Problem& problem, const Sequence& s, const ConstView& q,
                                  const ConstView& k, const ConstView& v, int64_t axes) {
  ReferenceProblem<Real> p;
  p.heads = problem.heads;
  p.kv_heads = problem.kv_heads;
  p.q_len = s.q_len;
  p.k_len = s.k_len;
  p.head_dim = problem.head_dim;
  p.value_dim = problem.value_dim;
  p.q = dense_rows<Real>(q, s.batch, s.q_begin, s.q_len);
  p.k = dense_rows<Real>(k, s.batch, s.k_begin, s.k_len);
  p.v = dense_rows<Real>(v, s.batch, s.k_begin, s.k_len);
  p.position_axes = axes;
  p.q_pos = positions_of(problem.q_positions, s.batch, s.q_begin, s.q_len, s.q_start, axes);
  p.k_pos = positions_of(problem.k_positions, s.batch, s.k_begin, s.k_len, s.k_start, axes);
  p.q_segments = segments_of(problem.q_segments, s.batch, s.q_begin, s.q_len);
  p.k_segments = segments_of(problem.k_segments, s.batch, s.k_begin, s.k_len);

  const bool boolean = problem.mask && problem.mask.dtype == DType::boolean;
  const bool additive = problem.mask && !boolean;
  p.allowed.assign(p.heads * p.q_len * p.k_len, 0);
  if (additive) p.additive.assign(p.allowed.size(), 0);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i) {
      const KeyRange range = problem.visible(s, i);
      for (int64_t j = range.begin; j < range.end; ++j) {
        const int64_t at = (h * p.q_len + i) * p.k_len + j;
        p.allowed[at] = 1;
        if (!problem.mask) continue;
        const double mask = mask_at(problem.mask, s.batch, h, s.q_begin + i, s.k_begin + j);
        if (boolean) p.allowed[at] = mask != 0;
        if (additive) {
          p.allowed[at] = mask != -std::numeric_limits<double>::infinity();
          p.additive[at] = static_cast<Real>(mask);
        }
      }
    }
  return p;
}

// What dropout makes of each pair of a sequence, or nothing: 0, or 1/(1 - p).
template <class Real>
std::vector<Real> keep_factors(const Problem& problem, int64_t index) {
  std::vector<Real> out;
  if (problem.dropout.p == 0) return out;
  const Sequence& s = problem.sequences[index];
  for (int64_t h = 0; h < problem.heads; ++h)
    for (int64_t i = 0; i < s.q_len; ++i) {
      const DropoutRow row = dropout_row(problem.dropout.seed, index, h, i);
      for (int64_t j = 0; j < s.k_len; ++j) {
        const bool dropped = is_dropped(row, static_cast<uint32_t>(j), problem.dropout.threshold());
        out.push_back(dropped ? Real(0) : 1 / (1 - static_cast<Real>(problem.dropout.p)));
      }
    }
  return out;
}

template <class Real>
void attend_by_loops(const ConstView& q, const ConstView& k, const ConstView& v,
                     const Encoding& encoding, const AttendOptions& options, const View& out) {
  const Problem problem = make_problem(q, k, v, options);
  encoding.check_problem(problem);
  const int64_t B = problem.batch, H = problem.heads, Lq = problem.q_len, dv = problem.value_dim;
  require_output(out, "out", std::vector<int64_t>{B, H, Lq, dv});
  if (options.lse) require_output(options.lse, "lse", std::vector<int64_t>{B, H, Lq});
  // A row that belongs to no sequence sees nothing.
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < Lq; ++i) {
        for (int64_t c = 0; c < dv; ++c) store(out, 0, b, h, i, c);
        if (options.lse) store(options.lse, -std::numeric_limits<double>::infinity(), b, h, i);
      }

  std::map<std::string, std::vector<Real>> parameters;
  for (const Parameter& parameter : encoding.parameters())
    parameters[parameter.name] = dense<Real>(encoding.parameter(parameter.name));

  for (size_t n = 0; n < problem.sequences.size(); ++n) {
    const Sequence& s = problem.sequences[n];
    ReferenceProblem<Real> p = problem_of<Real>(problem, s, q, k, v, encoding.position_axes());
    p.parameters = parameters;
    p.keep = keep_factors<Real>(problem, static_cast<int64_t>(n));
    if (options.scale) p.scale = static_cast<Real>(*options.scale);
    ReferenceResult<Real> r;
    encoding.reference(p, r);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < s.q_len; ++i) {
        const int64_t row = h * s.q_len + i;
        for (int64_t c = 0; c < dv; ++c)
          store(out, r.out[row * dv + c], s.batch, h, s.q_begin + i, c);
        if (options.lse) store(options.lse, r.lse[row], s.batch, h, s.q_begin + i);
      }
  }
}

}  // namespace

void attend_reference(const ConstView& q, const ConstView& k, const ConstView& v,
                      const Encoding& encoding, const AttendOptions& options, const View& out) {
  attend_by_loops<double>(q, k, v, encoding, options, out);
}

void attend_naive_f32(const ConstView& q, const ConstView& k, const ConstView& v,
                      const Encoding& encoding, const AttendOptions& options, const View& out) {
  attend_by_loops<float>(q, k, v, encoding, options, out);
}

}  // namespace locant::inline v0
