// A call of attention: bytes become an encoding, shapes, strides, masks, lengths, positions. Either
// every instruction set refuses it with one message, or all agree with the encoding's float64
// reference and, in the backward, with the scalar kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <numeric>

#include "locant/check/random.h"
#include "locant/core/executor.h"
#include "locant/encodings/registry.h"
#include "locant/kernels/isa.h"
#include "locant/layers/attend_backward.h"
#include "tests/fuzz/fuzz.h"

namespace locant {
namespace {

using fuzz::Bytes;
using fuzz::complaint_of;
using fuzz::expect;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Strided views over memory of exactly their size: AddressSanitizer sees a byte too many.
class Memory {
 public:
  // In an order of axes, some of them backwards, one perhaps repeated by a stride of 0.
  View tensor(Bytes& bytes, DType dtype, std::vector<int64_t> shape, bool repeats) {
    const int rank = static_cast<int>(shape.size());
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    const uint8_t layout = bytes.byte();
    for (int turn = layout % 4; turn > 0; --turn) std::next_permutation(order.begin(), order.end());
    const int repeated = repeats && layout >= 224 ? layout % rank : -1;
    std::vector<int64_t> strides(rank);
    int64_t size = 1, first = 0;
    for (int n = rank - 1; n >= 0; --n) {
      const int axis = order[n];
      if (axis == repeated) continue;
      const bool backwards = (layout >> (2 + axis)) % 2 == 1 && layout < 128 && shape[axis] > 0;
      strides[axis] = backwards ? -size : size;
      if (backwards) first += (shape[axis] - 1) * size;
      size *= shape[axis];
    }
    const size_t width = size_of(dtype);
    auto& memory = memory_.emplace_back(std::make_unique<std::byte[]>(size * width + (size == 0)));
    return View(memory.get() + (size == 0 ? 0 : first * width), dtype, shape, strides);
  }

  View filled(Bytes& bytes, DType dtype, std::vector<int64_t> shape, double scale) {
    const View out = tensor(bytes, dtype, std::move(shape), /*repeats=*/true);
    for_each(out, [&](const Extents& at) {
      set_element(out, scale * random_.symmetric(), at[0], at[1], at[2], at[3]);
    });
    return out;
  }

  template <class Action>
  static void for_each(const ConstView& x, const Action& action) {
    for (int64_t a = 0; a < x.shape[0]; ++a)
      for (int64_t b = 0; b < x.shape[1]; ++b)
        for (int64_t c = 0; c < x.shape[2]; ++c)
          for (int64_t e = 0; e < x.shape[3]; ++e) action({a, b, c, e});
  }

  Random& random() { return random_; }

 private:
  std::deque<std::unique_ptr<std::byte[]>> memory_;
  Random random_{7};
};

std::vector<double> values_of(const ConstView& x) {
  std::vector<double> out;
  Memory::for_each(
      x, [&](const Extents& at) { out.push_back(element(x, at[0], at[1], at[2], at[3])); });
  return out;
}

// What a call is made of; options point into it.
struct Call {
  Memory memory;
  std::unique_ptr<Encoding> encoding;
  DType dtype = DType::f32, out_dtype = DType::f32;
  View q, k, v, out, lse;
  AttendOptions options;
  std::vector<int64_t> lengths, k_lengths, q_segments, k_segments;
  std::vector<Sequence> sequences;
  std::deque<std::vector<uint8_t>> flags;
};

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
// Queries far from keys, but not by a million: Transformer-XL has a row for every distance between
// the least and the largest, which takes a sanitizer's build minutes.
constexpr int64_t kStarts[] = {0,
                               1,
                               -5,
                               300,
                               1 << 13,
                               (1 << 24) + 1,
                               -(1 << 24) - 1,
                               int64_t{1} << 60,
                               -(int64_t{1} << 60),
                               (int64_t{1} << 60) + 1,
                               std::numeric_limits<int64_t>::max()};
constexpr int64_t kWindows[] = {
    -1, -1, 0, 1, 2, 5, 17, 64, 1000, -2, int64_t{1} << 61, std::numeric_limits<int64_t>::max()};
constexpr int64_t kTiles[] = {0, 0, 1, 7, 16, 24, 33, 64};

void make_mask(Bytes& bytes, Call& c) {
  const int64_t B = c.q.shape[0], H = c.q.shape[1], Lq = c.q.shape[2], Lk = c.k.shape[2];
  const uint8_t kind = bytes.byte(), axes = bytes.byte();
  if (kind % 4 == 0) return;
  std::vector<int64_t> shape = {B, H, Lq, Lk};
  for (int axis = 0; axis < 4; ++axis)
    if ((axes >> axis) % 2 == 1) shape[axis] = 1;
  if (axes == 255) shape[3] = Lk + 1;  // does not fit
  shape.erase(shape.begin(), shape.begin() + (axes >> 4) % 3);
  const bool boolean = kind % 4 == 1;
  const View mask = c.memory.tensor(bytes, boolean ? DType::boolean : kTypes[(kind >> 2) % 4],
                                    shape, /*repeats=*/true);
  const double density = static_cast<double>(kind >> 4) / 15;
  Memory::for_each(mask, [&](const Extents& at) {
    const double dice = c.memory.random().unit();
    if (boolean) {
      *mask.at<bool>(at[0], at[1], at[2], at[3]) = dice < density;
    } else {
      const double value = dice > density ? -kInfinity : dice < 0.1 ? -1e4 : 4 * dice - 1;
      set_element(mask, value, at[0], at[1], at[2], at[3]);
    }
  });
  c.options.mask = mask;
}

void make_batch(Bytes& bytes, Call& c) {
  const int64_t B = c.q.shape[0], Lq = c.q.shape[2], Lk = c.k.shape[2];
  const uint8_t kind = bytes.byte() % 6;
  if (kind <= 3) {
    c.options.q_start = bytes.one_of(kStarts);
    c.options.k_start = bytes.flag() ? c.options.q_start : bytes.one_of(kStarts);
    if (bytes.byte() % 4 == 1) c.options.prefix = bytes.between(0, Lk + 1);
  }
  if (kind == 1 || kind == 2) {
    for (int64_t b = 0; b < B; ++b) c.lengths.push_back(bytes.between(0, Lq + (b == 3)));
    c.options.lengths = c.lengths;
    c.options.left_padded = bytes.flag();
  }
  if (kind == 2 || kind == 3) {
    for (int64_t b = 0; b < B; ++b) c.k_lengths.push_back(bytes.between(0, Lk + (b == 3)));
    c.options.k_lengths = c.k_lengths;
  }
  if (kind < 4) return;
  for (int64_t n = bytes.between(0, 5); n > 0; --n) {
    Sequence s;
    s.batch = bytes.between(0, std::max<int64_t>(B, 1) - 1);
    s.q_begin = bytes.between(0, Lq);
    s.q_len = bytes.between(0, Lq - s.q_begin + (bytes.byte() == 255));
    s.k_begin = bytes.between(0, Lk);
    s.k_len = bytes.between(0, Lk - s.k_begin + (bytes.byte() == 255));
    s.q_start = bytes.one_of(kStarts);
    s.k_start = bytes.flag() ? s.q_start : bytes.one_of(kStarts);
    s.prefix = bytes.byte() % 4 == 1 ? bytes.between(0, s.k_len) : 0;
    c.sequences.push_back(s);
  }
  c.options.sequences = c.sequences;
}

void make_segments(Bytes& bytes, Call& c) {
  if (bytes.byte() % 4 != 1) return;
  const int64_t rows = bytes.flag() ? 1 : c.q.shape[0];
  const auto fill = [&](std::vector<int64_t>& ids, int64_t length) {
    ids.resize(rows * length + 1);
    for (int64_t& id : ids) id = c.memory.random().below(3) - 1;
    return view(ids.data(), {rows, length});
  };
  c.options.q_segments = fill(c.q_segments, c.q.shape[2]);
  c.options.k_segments = fill(c.k_segments, c.k.shape[2]);
}

// A tensor like q of another type, contiguous.
View like(Memory& memory, const ConstView& x, DType dtype, int rank = 4) {
  Bytes plain(nullptr, 0);
  return memory.tensor(plain, dtype, {x.shape.begin(), x.shape.begin() + rank}, false);
}

void make_call(Bytes& bytes, Call& c) {
  const auto& entries = encodings();
  const EncodingEntry& entry = entries[bytes.byte() % entries.size()];
  FieldValues fields = entry.cases[bytes.byte() % entry.cases.size()];
  if (bytes.byte() % 8 == 1) {  // another value for a number
    const Field& field = entry.fields[bytes.byte() % entry.fields.size()];
    const int64_t value = bytes.between(-1, 200);
    if (std::holds_alternative<int64_t>(field.fallback)) fields[field.name] = value;
    if (std::holds_alternative<double>(field.fallback))
      fields[field.name] = static_cast<double>(value) / 8;
  }
  c.encoding = entry.make(fields);
  const FieldValues all = c.encoding->fields();
  const int64_t heads = std::get<int64_t>(all.at("heads")) + (bytes.byte() == 255);
  const int64_t dim = std::get<int64_t>(all.at("head_dim"));
  c.dtype = bytes.one_of(kTypes);
  c.out_dtype = is_half(c.dtype) && bytes.flag() ? DType::f32 : c.dtype;
  const double scale = bytes.byte() % 8 == 1 ? 6 : 1;
  for (const Parameter& parameter : c.encoding->parameters()) {
    const double size = 0.5 / std::sqrt(static_cast<double>(parameter.fan_in));
    c.encoding->set(parameter.name, c.memory.filled(bytes, c.dtype, parameter.shape, size));
  }
  const int64_t group = bytes.byte() % 4 == 1 ? heads : bytes.byte() % 4 == 1 ? 2 : 1;
  const int64_t kv_heads = std::max<int64_t>(heads / group, heads > 0);
  const int64_t B = bytes.between(0, 3), Lq = bytes.between(0, 40), Lk = bytes.between(0, 80);
  const int64_t value_dim = bytes.byte() % 8 == 1 ? bytes.between(1, 20) : dim;
  c.q = c.memory.filled(bytes, c.dtype, {B, heads, Lq, dim}, scale);
  c.k = c.memory.filled(bytes, c.dtype, {B, kv_heads, Lk, dim}, scale);
  c.v = c.memory.filled(bytes, c.dtype, {B, kv_heads, Lk, value_dim}, 1);
  c.out = c.memory.tensor(bytes, c.out_dtype, {B, heads, Lq, value_dim}, false);
  c.lse = like(c.memory, c.out, c.dtype == DType::f64 ? DType::f64 : DType::f32, 3);
  c.options.causal = bytes.flag();
  c.options.window_left = bytes.one_of(kWindows);
  c.options.window_right = bytes.one_of(kWindows);
  c.options.tiling = {.rows = bytes.one_of(kTiles), .keys = bytes.one_of(kTiles)};
  if (bytes.byte() % 8 == 1) c.options.scale = 0.3;
  if (bytes.byte() % 8 == 1) c.options.dropout = {.p = 0.25, .seed = bytes.byte()};
  make_batch(bytes, c);
  make_mask(bytes, c);
  make_segments(bytes, c);
  c.options.lse = c.lse;
}

struct Answer {
  std::vector<double> out, lse;
};

using Function = void (*)(const ConstView&, const ConstView&, const ConstView&, const Encoding&,
                          const AttendOptions&, const View&);

Answer by_loops(Call& c, Function function, DType dtype) {
  const View out = like(c.memory, c.out, dtype), lse = like(c.memory, c.out, dtype, 3);
  AttendOptions options = c.options;
  options.lse = lse;
  function(c.q, c.k, c.v, *c.encoding, options, out);
  return {values_of(out), values_of(lse)};
}

double unit_of(double wanted) {
  return std::max(1.0, std::abs(wanted));
}

// Beyond `slack`, which has a number for each row of elements.
double worst_error(const std::vector<double>& x, const std::vector<double>& wanted,
                   const std::vector<double>& slack = {}) {
  const size_t row = slack.empty() ? 1 : x.size() / slack.size();
  double worst = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    if (x[n] == wanted[n] || (std::isnan(x[n]) && std::isnan(wanted[n]))) continue;
    if (!std::isfinite(x[n]) || !std::isfinite(wanted[n])) return kInfinity;
    const double error = std::abs(x[n] - wanted[n]) / unit_of(wanted[n]);
    worst = std::max(worst, error - (slack.empty() ? 0 : slack[n / row]));
  }
  return worst;
}

std::string describe(const Call& c, const std::string& isa) {
  std::string out = c.encoding->name() + " " + name_of(c.dtype) + " on " + isa + ", q " +
                    shape_text(c.q) + " k " + shape_text(c.k) + " v " + shape_text(c.v);
  for (const auto& [name, value] : c.encoding->fields()) out += " " + name + "=" + text_of(value);
  out += c.options.causal ? " causal" : "";
  out += " window " + std::to_string(c.options.window_left) + "," +
         std::to_string(c.options.window_right) + " starts " + std::to_string(c.options.q_start) +
         "," + std::to_string(c.options.k_start);
  out += c.options.mask ? " mask " + shape_text(c.options.mask) : "";
  return out;
}

// Half the distance of 16-bit numbers, relative: what rounding a result may change.
double rounding_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0;
}

// The farthest start of the call.
double farthest(const Call& c) {
  double out = 0;
  const auto look = [&](int64_t start) {
    out = std::max(out, std::abs(static_cast<double>(start)));
  };
  look(c.options.q_start);
  look(c.options.k_start);
  for (const Sequence& s : c.sequences) {
    look(s.q_start);
    look(s.k_start);
  }
  return out;
}

// An angle is a position times a frequency: beyond 2^30 the reference's own, in float64, has too
// few digits to judge float32. Such calls must only agree to be calls.
bool is_comparable(const Call& c) {
  return farthest(c) <= 0x1p30;
}

// The loops in float32 make roundings of the same kinds in another order, so a kernel may err by a
// few times as much; where theirs cancel by chance, a few roundings of a value near 1 remain.
void compare(const Call& c, const std::string& isa, const char* what,
             const std::vector<double>& got, const std::vector<double>& wanted, double naive,
             double rounding, const std::vector<double>& slack = {}) {
  // In float64 angles are right to half a unit of the position, for scores of up to some tens.
  const double exact = 1e-11 + 64 * 0x1p-53 * farthest(c);
  const double tolerance = (c.dtype == DType::f64 ? exact : 4 * naive + 4e-6) + rounding;
  if (!std::isfinite(tolerance)) return;  // float32 overflows there: no yardstick
  const double error = worst_error(got, wanted, slack);
  if (!(error <= tolerance))
    fuzz::finding(std::string(what) + " error " + std::to_string(error) + " > " +
                  std::to_string(tolerance) + ": " + describe(c, isa));
}

double largest_row(const View& x) {
  double most = 0;
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      for (int64_t i = 0; i < x.shape[2]; ++i) {
        double sum = 0;
        for (int64_t d = 0; d < x.shape[3]; ++d) sum += std::pow(element(x, b, h, i, d), 2);
        most = std::max(most, sum);
      }
  return std::sqrt(most);
}

// At least the sum of all |q·k| of a score (Cauchy-Schwarz).
double largest_product(const Call& c) {
  const double dim = static_cast<double>(c.q.shape[3]);
  const double usual = c.encoding->name() == "t5" ? 1 : 1 / std::sqrt(dim);
  return largest_row(c.q) * largest_row(c.k) * c.options.scale.value_or(usual);
}

// All gradients of one call, one after another; NaN-free calls only.
std::vector<double> gradients(Call& c, const View& dout) {
  const View dq = like(c.memory, c.q, c.out_dtype), dk = like(c.memory, c.k, c.out_dtype),
             dv = like(c.memory, c.v, c.out_dtype);
  const ParameterGradients all =
      attend_backward(c.q, c.k, c.v, *c.encoding, c.options, {c.out, c.lse}, dout, dq, dk, dv);
  std::vector<double> out = values_of(dq);
  for (const View& x : {dk, dv})
    for (const double value : values_of(x)) out.push_back(value);
  for (const auto& [_, x] : all)
    for (const double value : values_of(x.view())) out.push_back(value);
  return out;
}

void run(Call& c) {
  std::vector<std::string> isas = available_isas();
  std::swap(isas.front(), isas.back());  // scalar first: the others are compared with it
  const auto attend_on = [&](const std::string& isa) {
    set_isa(isa);
    return complaint_of([&] { attend(c.q, c.k, c.v, *c.encoding, c.options, c.out); });
  };
  const std::string refusal = attend_on(isas.front());
  if (!refusal.empty()) {
    for (const std::string& isa : isas)
      expect(attend_on(isa) == refusal, "another message on " + isa + ": " + refusal);
    return;
  }
  if (c.out.size() == 0) return;  // nothing is asked of the encoding then
  const bool comparable = is_comparable(c);
  const Answer wanted = by_loops(c, attend_reference, DType::f64);
  Answer naive = wanted;
  if (c.dtype != DType::f64) naive = by_loops(c, attend_naive_f32, DType::f32);
  const double out_error = worst_error(naive.out, wanted.out);
  const double lse_error = worst_error(naive.lse, wanted.lse);
  // A score of 100 is rounded to a hundred units, and its weight errs by as much of itself; so does
  // one of 1 that is what remains of such products. Those of xpos, with keys far ahead of queries,
  // grow to 1e10.
  const double unit = c.dtype == DType::f64 ? 0x1p-51 : 0x1p-22, products = largest_product(c);
  std::vector<double> slack;
  for (const double lse : wanted.lse)
    slack.push_back(unit * (products + (std::isfinite(lse) ? std::abs(lse) : 0)));
  const double most_slack = *std::max_element(slack.begin(), slack.end());
  const View dout = like(c.memory, c.out, c.out_dtype);
  Memory::for_each(dout, [&](const Extents& at) {
    set_element(dout, c.memory.random().symmetric(), at[0], at[1], at[2], at[3]);
  });
  std::vector<double> scalar;
  for (const std::string& isa : isas) {
    expect(attend_on(isa).empty(), "refused on " + isa + " alone");
    if (!comparable) continue;
    compare(c, isa, "out", values_of(c.out), wanted.out, out_error, rounding_of(c.out_dtype),
            slack);
    compare(c, isa, "lse", values_of(c.lse), wanted.lse, lse_error, 0, slack);
    std::vector<double> got;
    complaint_of([&] { got = gradients(c, dout); });
    if (isa == isas.front()) scalar = got;
    expect(got.size() == scalar.size(), "gradients are refused on " + isa + " alone");
    double largest = 1;
    for (const double value : scalar) largest = std::max(largest, std::abs(value));
    // Both within 2e-5 of the largest one (check.h), and of scores that may be large.
    const double tolerance =
        (c.dtype == DType::f64 ? 1e-9 + 64 * 0x1p-53 * farthest(c) : 4e-5 + 100 * lse_error) +
        2 * rounding_of(c.out_dtype) + 2 * most_slack;
    for (size_t n = 0; n < got.size() && std::isfinite(largest) && tolerance < 1e-2; ++n) {
      const double error = std::abs(got[n] - scalar[n]) / largest;
      if (!(error <= tolerance))
        fuzz::finding("gradients differ by " + std::to_string(error) + ": " + describe(c, isa));
    }
  }
}

}  // namespace
}  // namespace locant

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool alone = (locant::set_num_threads(1), true);
  static_cast<void>(alone);
  locant::fuzz::Bytes bytes(data, size);
  locant::Call call;
  if (locant::fuzz::complaint_of([&] { locant::make_call(bytes, call); }).empty())
    locant::run(call);
  return 0;
}
