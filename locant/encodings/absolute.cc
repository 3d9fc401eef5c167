#include "locant/encodings/absolute.h"

#include <algorithm>

#include "locant/core/executor.h"
#include "locant/core/overlap.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kItemRows = 64;      // per work item; sinusoids are made in runs of so many
constexpr int64_t kItemChannels = 64;  // of the backward, where rows are added up in order

void check_input(const std::string& scope, int64_t dim, const char* name, const ConstView& x) {
  require(x.rank == 3, scope, name, " must have 3 axes (B, L, D), got shape ", shape_text(x));
  for (const int64_t extent : x.shape)
    require(extent >= 0, scope, name, " has a negative extent: ", shape_text(x));
  require(x.shape[2] == dim, scope, name, " has width ", x.shape[2], " but the encoding has dim ",
          dim);
  require(x.data != nullptr || x.size() == 0, scope, name, " must not be null");
  require(x.dtype == DType::f32 || x.dtype == DType::f64, scope, name, " must be f32 or f64, got ",
          name_of(x.dtype));
}

void check_output(const std::string& scope, const ConstView& x, DType dtype, const View& out) {
  require(out.dtype == dtype, scope, "out must be ", name_of(dtype), ", got ", name_of(out.dtype));
  require(out.rank == 3 && out.shape == x.shape, scope, "out has shape ", shape_text(out),
          " but x has ", shape_text(x));
  if (out.size() == 0) return;
  require(out.data != nullptr, scope, "out must not be null");
  for (int axis = 0; axis < out.rank; ++axis)
    require(out.strides[axis] != 0 || out.shape[axis] == 1, scope, "out has stride 0 on axis ",
            axis, " of extent ", out.shape[axis]);
  const bool in_place = out.data == x.data && out.dtype == x.dtype && out.strides == x.strides;
  require(in_place || !may_overlap(out, x), scope, "out overlaps x in memory, and is not x itself");
}

void check_tokens(const std::string& scope, const ConstView& tokens, const char* name, DType dtype,
                  const ConstView& x, bool broadcasts) {
  if (!tokens) return;
  require(tokens.dtype == dtype, scope, name, " must be ", name_of(dtype), ", got ",
          name_of(tokens.dtype));
  require(tokens.rank == 2 && tokens.shape[1] == x.shape[1] &&
              (tokens.shape[0] == x.shape[0] || (broadcasts && tokens.shape[0] == 1)),
          scope, name, " has shape ", shape_text(tokens), " but must be (", x.shape[0],
          broadcasts ? " or 1, " : ", ", x.shape[1], ")");
}

void check_options(const std::string& scope, const ConstView& x, const EmbedOptions& options,
                   int64_t padding_idx) {
  check_tokens(scope, options.positions, "positions", DType::i64, x, /*broadcasts=*/true);
  check_tokens(scope, options.pads, "pads", DType::boolean, x, /*broadcasts=*/false);
  require(options.start >= -kMaxPosition && options.start <= kMaxPosition, scope, "start is ",
          options.start, ", beyond ±2^60");
  require(!options.positions || (options.start == 0 && !options.pads), scope,
          "positions are the rows to take: leave out start and pads");
  require(!options.pads || padding_idx >= 0, scope,
          "pads change nothing while padding_idx is -1: set padding_idx, or give positions");
}

template <class Real>
void add_row(const Real* x, int64_t x_stride, const Real* pe, int64_t dim, Real* out,
             int64_t out_stride) {
  if (x_stride == 1 && out_stride == 1) {
    for (int64_t c = 0; c < dim; ++c) out[c] = x[c] + pe[c];
  } else {
    for (int64_t c = 0; c < dim; ++c) out[c * out_stride] = x[c * x_stride] + pe[c];
  }
}

}  // namespace

// (1 | B, L): one row serves the batch unless its sequences differ.
std::vector<int64_t> Absolute::find_positions(const ConstView& x,
                                              const EmbedOptions& options) const {
  const int64_t B = x.shape[0], L = x.shape[1];
  const ConstView &given = options.positions, &pads = options.pads;
  const int64_t count = given ? given.shape[0] : pads ? B : 1;
  std::vector<int64_t> positions(count * L);
  for (int64_t b = 0; b < count; ++b) {
    int64_t next = options.start + (padding_idx_ >= 0 ? padding_idx_ + 1 : 0);
    for (int64_t l = 0; l < L; ++l) {
      int64_t& position = positions[b * L + l];
      if (given) {
        position = *given.at<int64_t>(b, l);
        require(position >= -kMaxPosition && position <= kMaxPosition, name(), "positions hold ",
                position, ", beyond ±2^60");
      } else if (pads && element(pads, b, l) != 0) {
        position = padding_idx_;
      } else {
        position = next++;
      }
      check_position(position);
    }
  }
  return positions;
}

template <class Real>
void Absolute::add(const ConstView& x, std::span<const int64_t> positions, const View& out) const {
  const int64_t B = x.shape[0], L = x.shape[1];
  const int64_t items = (L + kItemRows - 1) / kItemRows;            // of one row of positions
  const int64_t rows = static_cast<int64_t>(positions.size()) / L;  // of positions: 1 or B
  executor()->parallel_for(rows * items, [&](int64_t item, int) {
    const int64_t row = item / items, begin = item % items * kItemRows;
    const int64_t first = rows == 1 ? 0 : row, last = rows == 1 ? B - 1 : row;
    const auto own = positions.subspan(row * L + begin, std::min(kItemRows, L - begin));
    each_row(own, UseRow<Real>([&](int64_t n, const Real* pe) {
               for (int64_t b = first; b <= last; ++b)
                 add_row(x.at<Real>(b, begin + n), x.strides[2], pe, dim_,
                         out.at<Real>(b, begin + n), out.strides[2]);
             }));
  });
}

void Absolute::embed(const ConstView& x, const EmbedOptions& options, const View& out) const {
  check_input(name(), dim_, "x", x);
  check_output(name(), x, x.dtype, out);
  check_options(name(), x, options, padding_idx_);
  for (const Parameter& weight : parameters())
    require(!may_overlap(out, parameter(weight.name)), name(), "out overlaps the parameter '",
            weight.name, "' in memory");
  if (out.size() == 0) return;
  const std::vector<int64_t> positions = find_positions(x, options);
  if (x.dtype == DType::f64)
    add<double>(x, positions, out);
  else
    add<float>(x, positions, out);
}

void Absolute::embed_reference(const ConstView& x, const EmbedOptions& options,
                               const View& out) const {
  check_input(name(), dim_, "x", x);
  check_output(name(), x, DType::f64, out);
  check_options(name(), x, options, padding_idx_);
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    int64_t real_tokens = 0;  // of row b, before l
    for (int64_t l = 0; l < x.shape[1]; ++l) {
      const bool pad = options.pads && element(options.pads, b, l) != 0;
      int64_t position = options.start + l;
      if (padding_idx_ >= 0)
        position = pad ? padding_idx_ : padding_idx_ + 1 + options.start + real_tokens;
      if (options.positions)
        position = *options.positions.at<int64_t>(options.positions.shape[0] > 1 ? b : 0, l);
      if (!pad) ++real_tokens;
      for (int64_t c = 0; c < dim_; ++c)
        *out.at<double>(b, l, c) = element(x, b, l, c) + reference_element(position, c);
    }
  }
}

void Absolute::embed_pullback(const ConstView& dout, const EmbedOptions& options,
                              ParameterGradients& gradients) const {
  check_input(name(), dim_, "dout", dout);
  check_options(name(), dout, options, padding_idx_);
  if (dout.size() == 0) return;
  const std::vector<int64_t> positions = find_positions(dout, options);
  const int64_t items = (dim_ + kItemChannels - 1) / kItemChannels;
  executor()->parallel_for(items, [&](int64_t item, int) {
    const int64_t begin = item * kItemChannels;
    pull_back_rows(positions, dout, begin, std::min(begin + kItemChannels, dim_), gradients);
  });
}

Prepared Absolute::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(name(), plain_.config(), problem);
  return plain_.prepare(problem, q, k);
}

void Absolute::reference(const ReferenceProblem<double>& p, ReferenceResult<double>& r) const {
  plain_.reference(p, r);
}
void Absolute::reference(const ReferenceProblem<float>& p, ReferenceResult<float>& r) const {
  plain_.reference(p, r);
}

}  // namespace locant::inline v0
