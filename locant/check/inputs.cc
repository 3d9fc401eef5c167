#include "locant/check/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "locant/check/random.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kPrefix = 13;

// Streams of random numbers: what depends on one is not moved by changes to another.
enum class Stream : uint64_t { tensors = 1, mask, weights, segments };

Random random_for(const CheckCase& check, Stream stream) {
  return Random(static_cast<uint64_t>(check.number) * 8 + static_cast<uint64_t>(stream));
}

// (B, H, L, d) over memory in which a row of all heads takes `row` elements (blhd), or contiguous.
template <class T>
View head_view(T* data, const Extents& shape, int64_t length, int64_t row) {
  const auto [B, H, L, d] = shape;
  return View(data, dtype_of<T>(), shape, Extents{length * row, d, row, 1});
}

// Finite, and as low as M goes.
template <class M>
M lowest() {
  if constexpr (std::is_same_v<M, Bfloat>) return Bfloat(-0x1.fep127f);
  if constexpr (!std::is_same_v<M, Bfloat>) return -std::numeric_limits<float>::max();
}

// An additive mask (1, H, Lq, Lk): a few -inf, many large negative values.
template <class M>
View additive_mask(std::vector<M>& values, int64_t H, int64_t Lq, int64_t Lk, DType dtype,
                   Random& random) {
  const M hidden = static_cast<M>(-std::numeric_limits<float>::infinity());
  for (int64_t n = 0; n < H * Lq * Lk; ++n) {
    const double dice = random.unit();
    values[n] = static_cast<M>(rounded(random.symmetric(), dtype));
    if (dice < 0.1) values[n] = hidden;
    if (dice > 0.9) values[n] = lowest<M>();
    // Sparse enough not to meet alone in a row: near -1e4 float32 is right to 1e-3 only, and
    // the case's tolerance would be so wide.
    if (n % Lk % 8 == 1) values[n] = static_cast<M>(-1e4f);
    const int64_t i = n / Lk % Lq;
    if (i % 11 == 5) values[n] = lowest<M>();  // all equally bad: a mean over the visible keys
    if (i % 11 == 7) values[n] = hidden;       // nothing visible
  }
  return view(values.data(), {1, H, Lq, Lk});
}

}  // namespace

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return value;
    case DType::f16:
      return static_cast<float>(Half(static_cast<float>(value)));
    case DType::bf16:
      return static_cast<float>(Bfloat(static_cast<float>(value)));
    default:
      return static_cast<float>(value);
  }
}

std::vector<double> dense(const ConstView& x) {
  std::vector<double> values;
  values.reserve(x.size());
  for (int64_t a = 0; a < x.shape[0]; ++a)
    for (int64_t b = 0; b < x.shape[1]; ++b)
      for (int64_t c = 0; c < x.shape[2]; ++c)
        for (int64_t e = 0; e < x.shape[3]; ++e) values.push_back(element(x, a, b, c, e));
  return values;
}

template <class Real>
CheckInputs<Real>::CheckInputs(const CheckCase& check) {
  const bool padded =
      check.batch == BatchKind::right_padded || check.batch == BatchKind::left_padded;
  const int64_t batch = padded ? 4 : 2;
  options.scale = check.scale;
  options.tiling = check.tiling;
  options.dropout = {.p = check.dropout, .seed = static_cast<uint64_t>(check.number)};
  make_tensors(check, batch);
  make_out(check, batch);
  make_batch(check, batch);
  make_visible(check);
  make_mask(check, batch);
  make_segments(check, batch);
  make_encoding_with_weights(check);
  if (check.poisoned) poison();
}

template <class Real>
void CheckInputs<Real>::make_tensors(const CheckCase& check, int64_t batch) {
  const int64_t H = check.heads, G = check.kv_heads, d = check.head_dim;
  const Extents q_shape = {batch, H, check.q_len, d}, k_shape = {batch, G, check.k_len, d};
  Random random = random_for(check, Stream::tensors);
  const auto filled = [&](int64_t size) {
    std::vector<Real>& values = buffer(size);
    for (Real& value : values) value = static_cast<Real>(rounded(random.symmetric(), check.dtype));
    return values.data();
  };
  switch (check.layout) {
    case LayoutKind::bhld:
      q = View(filled(batch * H * check.q_len * d), dtype_of<Real>(), q_shape);
      k = View(filled(batch * G * check.k_len * d), dtype_of<Real>(), k_shape);
      v = View(filled(batch * G * check.k_len * d), dtype_of<Real>(), k_shape);
      break;
    case LayoutKind::blhd:
      q = head_view(filled(batch * check.q_len * H * d), q_shape, check.q_len, H * d);
      k = head_view(filled(batch * check.k_len * G * d), k_shape, check.k_len, G * d);
      v = head_view(filled(batch * check.k_len * G * d), k_shape, check.k_len, G * d);
      break;
    case LayoutKind::fused_qkv: {
      const int64_t length = std::max(check.q_len, check.k_len), row = (H + 2 * G) * d;
      Real* data = filled(batch * length * row);
      q = head_view(data, q_shape, length, row);
      k = head_view(data + H * d, k_shape, length, row);
      v = head_view(data + (H + G) * d, k_shape, length, row);
      break;
    }
  }
}

template <class Real>
void CheckInputs<Real>::make_out(const CheckCase& check, int64_t batch) {
  const int64_t H = check.heads, Lq = check.q_len, d = check.head_dim;
  const Extents shape = {batch, H, Lq, d};
  const auto garbage = [&](auto& values) {
    using T = typename std::remove_reference_t<decltype(values)>::value_type;
    std::fill(values.begin(), values.end(), static_cast<T>(12345));
    return check.layout == LayoutKind::bhld ? View(values.data(), dtype_of<T>(), shape)
                                            : head_view(values.data(), shape, Lq, H * d);
  };
  const int64_t size = batch * H * Lq * d;
  out = check.out_dtype == check.dtype ? garbage(buffer(size)) : garbage(wide_buffer(size));
}

template <class Real>
void CheckInputs<Real>::make_batch(const CheckCase& check, int64_t batch) {
  const int64_t Lq = check.q_len, Lk = check.k_len;
  options.q_start = check.q_start;
  options.k_start = check.k_start;
  switch (check.batch) {
    case BatchKind::full:
      break;
    case BatchKind::right_padded:
    case BatchKind::left_padded:
      lengths_ = {Lq, std::max(Lq - 13, Lq / 2), 0, std::min<int64_t>(Lq, 9)};
      options.lengths = lengths_;
      if (Lq != Lk) {
        k_lengths_ = {Lk - 7, Lk, std::min<int64_t>(Lk, 20), 0};
        options.k_lengths = k_lengths_;
      }
      options.left_padded = check.batch == BatchKind::left_padded;
      break;
    case BatchKind::packed: {
      // Two sequences in the first batch row, one in the others; a few rows belong to none.
      const int64_t q_cut = Lq * 2 / 5, k_cut = Lk * 2 / 5;
      const int64_t q_skip = std::min<int64_t>(Lq / 3, 4);
      const int64_t q0 = check.q_start, k0 = check.k_start;
      sequences_.push_back(
          {.batch = 0, .q_len = q_cut, .k_len = k_cut, .q_start = q0, .k_start = k0});
      sequences_.push_back({.batch = 0,
                            .q_begin = q_cut + 1,
                            .q_len = Lq - q_cut - 1,
                            .k_begin = k_cut + 3,
                            .k_len = Lk - k_cut - 3,
                            .q_start = q0 + 11,
                            .k_start = k0 + 11});
      for (int64_t b = 1; b < batch; ++b)
        sequences_.push_back({.batch = b,
                              .q_begin = q_skip,
                              .q_len = Lq - q_skip - 1,
                              .k_begin = 1,
                              .k_len = Lk - 6,
                              .q_start = q0,
                              .k_start = k0});
      if (check.visible == VisibleKind::prefix)
        for (Sequence& s : sequences_) s.prefix = std::min(kPrefix, s.k_len);
      options.sequences = sequences_;
      options.q_start = options.k_start = 0;  // each sequence has its own
      break;
    }
  }
}

template <class Real>
void CheckInputs<Real>::make_visible(const CheckCase& check) {
  switch (check.visible) {
    case VisibleKind::all:
      break;
    case VisibleKind::causal:
      options.causal = true;
      break;
    case VisibleKind::window:
      options.window_left = 9;
      options.window_right = 5;
      break;
    case VisibleKind::causal_window:
      options.causal = true;
      options.window_left = 21;
      break;
    case VisibleKind::prefix:
      options.causal = true;
      if (options.sequences.empty()) options.prefix = std::min(kPrefix, check.k_len);
      break;
  }
}

template <class Real>
void CheckInputs<Real>::make_mask(const CheckCase& check, int64_t batch) {
  Random random = random_for(check, Stream::mask);
  // Not f16: near its lowest value, -65504, float32 has too few digits left to compare.
  const DType mask_type = check.dtype == DType::f16 ? DType::f32 : check.dtype;
  const int64_t H = check.heads, Lq = check.q_len, Lk = check.k_len;
  switch (check.mask) {
    case MaskKind::none:
      break;
    case MaskKind::boolean: {  // (B, H, Lq, Lk)
      const int64_t size = batch * H * Lq * Lk;
      boolean_mask_ = std::make_unique<bool[]>(size);
      for (int64_t n = 0; n < size; ++n) boolean_mask_[n] = random.unit() < 0.75;
      options.mask = view(boolean_mask_.get(), {batch, H, Lq, Lk});
      break;
    }
    case MaskKind::empty_rows: {  // (B, 1, Lq, Lk): single rows and a run longer than a tile
      boolean_mask_ = std::make_unique<bool[]>(batch * Lq * Lk);
      for (int64_t n = 0; n < batch * Lq; ++n) {
        const int64_t i = n % Lq;
        const bool empty = i % 5 == 0 || (i >= 15 && i < 45);
        for (int64_t j = 0; j < Lk; ++j) boolean_mask_[n * Lk + j] = !empty && random.unit() < 0.75;
      }
      options.mask = view(boolean_mask_.get(), {batch, 1, Lq, Lk});
      break;
    }
    case MaskKind::additive:
      if constexpr (std::is_same_v<Real, Half>) {
        options.mask = additive_mask(wide_buffer(H * Lq * Lk), H, Lq, Lk, mask_type, random);
      } else {
        options.mask = additive_mask(buffer(H * Lq * Lk), H, Lq, Lk, mask_type, random);
      }
      break;
  }
}

template <class Real>
void CheckInputs<Real>::make_segments(const CheckCase& check, int64_t batch) {
  if (check.segments == SegmentKind::none) return;
  Random random = random_for(check, Stream::segments);
  const bool scattered = check.segments == SegmentKind::scattered;
  const int64_t rows = scattered ? 1 : batch, longest = scattered ? 1 : 60;
  const auto filled = [&](std::vector<int64_t>& ids, int64_t length) {
    while (static_cast<int64_t>(ids.size()) < rows * length)
      ids.insert(ids.end(), 1 + random.below(longest), random.below(3) - 1);
    return view(ids.data(), {rows, length});
  };
  options.q_segments = filled(q_segments_, check.q_len);
  options.k_segments = filled(k_segments_, check.k_len);
}

template <class Real>
void CheckInputs<Real>::make_encoding_with_weights(const CheckCase& check) {
  encoding = make_encoding(check.encoding, check.fields);
  Random random = random_for(check, Stream::weights);
  for (const Parameter& parameter : encoding->parameters()) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    std::vector<Real>& values = buffer(size);
    // What a matrix makes should be of the size of a table's entries.
    const double size_of_value = 0.5 / std::sqrt(static_cast<double>(parameter.fan_in));
    for (Real& value : values)
      value = static_cast<Real>(rounded(size_of_value * random.symmetric(), check.dtype));
    parameters.emplace_back(parameter.name, View(values.data(), dtype_of<Real>(), parameter.shape));
    encoding->set(parameter.name, parameters.back().second);
  }
}

// What must not be seen, and what must: rows of no sequence hold NaN and infinities; one live key
// of the first key head and one live value of the last hold a NaN, for the queries that see them.
template <class Real>
void CheckInputs<Real>::poison() {
  const Real nan = static_cast<Real>(std::numeric_limits<float>::quiet_NaN());
  const Real infinity = static_cast<Real>(std::numeric_limits<float>::infinity());
  const Problem problem = make_problem(q, k, v, options);
  std::vector<bool> q_owned(problem.batch * problem.q_len);
  std::vector<bool> k_owned(problem.batch * problem.k_len);
  for (const Sequence& s : problem.sequences) {
    for (int64_t i = 0; i < s.q_len; ++i) q_owned[s.batch * problem.q_len + s.q_begin + i] = true;
    for (int64_t j = 0; j < s.k_len; ++j) k_owned[s.batch * problem.k_len + s.k_begin + j] = true;
  }
  const auto spoil = [&](const View& x, const std::vector<bool>& owned) {
    for (int64_t b = 0; b < x.shape[0]; ++b)
      for (int64_t h = 0; h < x.shape[1]; ++h)
        for (int64_t row = 0; row < x.shape[2]; ++row)
          for (int64_t c = 0; c < x.shape[3] && !owned[b * x.shape[2] + row]; ++c)
            *x.template at<Real>(b, h, row, c) = c % 2 ? infinity : nan;
  };
  spoil(q, q_owned);
  spoil(k, k_owned);
  spoil(v, k_owned);
  const Sequence& s = problem.sequences.front();
  *k.template at<Real>(s.batch, 0, s.k_begin + s.k_len * 2 / 3, 0) = nan;
  *v.template at<Real>(s.batch, problem.kv_heads - 1, s.k_begin + s.k_len * 3 / 4,
                       problem.value_dim - 1) = nan;
}

template class CheckInputs<float>;
template class CheckInputs<double>;
template class CheckInputs<Half>;
template class CheckInputs<Bfloat>;

}  // namespace locant::inline v0
