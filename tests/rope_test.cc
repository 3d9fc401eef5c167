// RoPE: the relative property, rotation in and out of place, axes, sequences.
#include "locant/encodings/rope/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "locant/check/random.h"
#include "locant/core/executor.h"
#include "locant/kernels/isa.h"
#include "locant/layers/attend.h"
#include "tests/message_of.h"

namespace locant {
namespace {

template <class Real = double>
std::vector<Real> random_values(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<Real> values(size);
  for (Real& value : values) value = static_cast<Real>(random.symmetric());
  return values;
}

// --- rotation ------------------------------------------------------------------------------------

// Turned by hand: the pair as a complex number times magnitude·e^{iθp}, in long double.
std::vector<double> turned(const Rope& rope, const std::vector<double>& row, int64_t p) {
  const RopeFrequencies f = rope.frequencies(0);
  const int64_t pairs = static_cast<int64_t>(f.theta.size());
  const bool halves = rope.config().layout == "half";
  std::vector<double> out = row;
  for (int64_t t = 0; t < pairs; ++t) {
    const int64_t a = halves ? t : 2 * t, b = halves ? t + pairs : 2 * t + 1;
    const long double angle = static_cast<long double>(p) * f.theta[t];
    const auto z = std::complex<long double>(row[a], row[b]) *
                   std::polar(static_cast<long double>(f.magnitude), angle);
    out[a] = static_cast<double>(z.real());
    out[b] = static_cast<double>(z.imag());
  }
  return out;
}

TEST(RopeRotate, IsAComplexProductOfEachPairAndCopiesTheRest) {
  for (const std::string layout : {"half", "interleaved"})
    for (const int64_t dim : {2, 10, 34, 64, 72})
      for (const double part : {1.0, 0.6}) {
        if (static_cast<int64_t>(static_cast<double>(dim) * part) % 2 == 1 || dim * part < 2)
          continue;
        const Rope rope({.head_dim = dim, .partial_rotary_factor = part, .layout = layout});
        const std::vector<double> x = random_values(70 * dim, 3);
        std::vector<double> out(x.size());
        rope.rotate(view(x.data(), {1, 1, 70, dim}), {.start = -5},
                    view(out.data(), {1, 1, 70, dim}));
        for (int64_t i = 0; i < 70; ++i) {
          const auto begin = x.begin() + i * dim;
          const std::vector<double> want = turned(rope, {begin, begin + dim}, i - 5);
          for (int64_t c = 0; c < dim; ++c)
            ASSERT_NEAR(out[i * dim + c], want[c], 1e-14) << layout << dim << " row " << i;
        }
      }
}

TEST(RopeRotate, AnglesAreExactAtFarPositions) {
  const Rope rope({.head_dim = 64});
  for (const int64_t p : {1 << 20, 1 << 24, (1 << 24) + 1, 1 << 30}) {
    const std::vector<float> x(64, 1.0f);
    std::vector<float> out(64);
    rope.rotate(view(x.data(), {1, 1, 1, 64}), {.start = p}, view(out.data(), {1, 1, 1, 64}));
    const std::vector<double> want = turned(rope, std::vector<double>(64, 1.0), p);
    for (int64_t c = 0; c < 64; ++c) EXPECT_NEAR(out[c], want[c], 2.5e-7) << p;
  }
}

TEST(RopeRotate, InnerProductsDependOnTheDistanceOnly) {
  const int64_t dim = 32;
  for (const char* scaling : {"none", "linear", "ntk", "proportional", "xpos"}) {
    const Rope rope({.head_dim = dim, .scaling = scaling, .factor = 3});
    const std::vector<double> q = random_values(dim, 1), k = random_values(dim, 2);
    const auto product = [&](int64_t m, int64_t n) {
      std::vector<double> a(dim), b(dim);
      const int64_t origin = m;
      rope.rotate(view(q.data(), {1, 1, 1, dim}), {.start = m, .origin = origin},
                  view(a.data(), {1, 1, 1, dim}));
      rope.rotate(view(k.data(), {1, 1, 1, dim}), {.start = n, .side = Side::key, .origin = origin},
                  view(b.data(), {1, 1, 1, dim}));
      double sum = 0;
      for (int64_t c = 0; c < dim; ++c) sum += a[c] * b[c];
      return sum;
    };
    for (const int64_t shift : {1, 63, 64, 1000, 1 << 24})
      EXPECT_NEAR(product(37 + shift, 5 + shift), product(37, 5), 1e-13) << scaling << shift;
    EXPECT_GT(std::abs(product(38, 5) - product(37, 5)), 1e-4) << scaling;
  }
}

TEST(RopeRotate, InPlaceStridesTypesThreadsAndIsasAgree) {
  const int64_t B = 2, H = 3, L = 150, d = 40;
  for (const std::string layout : {"half", "interleaved"}) {
    const Rope rope({.head_dim = d, .partial_rotary_factor = 0.9, .layout = layout});
    const std::vector<float> x = random_values<float>(B * H * L * d, 5);
    std::vector<float> want(x.size());
    rope.rotate(view(x.data(), {B, H, L, d}), {.start = 9}, view(want.data(), {B, H, L, d}));

    std::vector<float> in_place = x;
    const View all = view(in_place.data(), {B, H, L, d});
    const int threads = num_threads();
    set_num_threads(3);
    rope.rotate(all, {.start = 9}, all);
    set_num_threads(threads);
    EXPECT_EQ(in_place, want);

    // (B, L, H, d), and a last axis that is not contiguous: (B, d, L, H).
    for (const Extents order : {Extents{0, 2, 1, 3}, Extents{0, 3, 2, 1}}) {
      const Extents shape = {B, H, L, d};
      Extents strides;
      int64_t stride = 1;
      for (int n = 3; n >= 0; --n) {
        strides[order[n]] = stride;
        stride *= shape[order[n]];
      }
      std::vector<float> other(x.size());
      const View y(other.data(), DType::f32, shape, strides);
      const auto each = [&](const auto& body) {
        for (int64_t b = 0; b < B; ++b)
          for (int64_t h = 0; h < H; ++h)
            for (int64_t i = 0; i < L; ++i)
              for (int64_t c = 0; c < d; ++c)
                body(*y.at<float>(b, h, i, c), ((b * H + h) * L + i) * d + c);
      };
      each([&](float& value, int64_t n) { value = x[n]; });
      rope.rotate(y, {.start = 9}, y);
      each([&](float& value, int64_t n) { ASSERT_NEAR(value, want[n], 3e-7); });
    }

    for (const std::string& name : available_isas()) {
      set_isa(name);
      std::vector<float> out(x.size());
      rope.rotate(view(x.data(), {B, H, L, d}), {.start = 9}, view(out.data(), {B, H, L, d}));
      for (size_t n = 0; n < x.size(); ++n) ASSERT_NEAR(out[n], want[n], 3e-7) << name;
    }
    set_isa("best");
  }
}

TEST(RopeRotate, InverseIsTheTransposeWithTheSameMagnitude) {
  const int64_t d = 16, L = 20;
  for (const char* scaling : {"none", "yarn", "xpos"}) {
    const Rope rope({.head_dim = d, .scaling = scaling, .factor = 4, .original_max_position = 64});
    for (const Side side : {Side::query, Side::key}) {
      const std::vector<double> x = random_values(L * d, 1), y = random_values(L * d, 2);
      std::vector<double> rx(x.size()), ry(y.size());
      rope.rotate(view(x.data(), {1, 1, L, d}), {.start = 300, .side = side},
                  view(rx.data(), {1, 1, L, d}));
      rope.rotate(view(y.data(), {1, 1, L, d}), {.start = 300, .side = side, .inverse = true},
                  view(ry.data(), {1, 1, L, d}));
      double forward = 0, back = 0;  // <R x, y> = <x, Rᵀ y>
      for (size_t n = 0; n < x.size(); ++n) {
        forward += rx[n] * y[n];
        back += x[n] * ry[n];
      }
      EXPECT_NEAR(forward, back, 1e-12) << scaling;
    }
  }
}

TEST(RopeRotate, EachBatchRowHasItsOwnLength) {
  const int64_t d = 8, L = 6;
  const Rope rope({.head_dim = d, .scaling = "dynamic", .factor = 2, .original_max_position = 16});
  const std::vector<double> x = random_values(2 * L * d, 1);
  std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5, 90, 91, 92, 93, 94, 95};
  std::vector<double> both(2 * L * d), alone(L * d);
  rope.rotate(view(x.data(), {2, 1, L, d}), {.positions = view(ids.data(), {2, L})},
              view(both.data(), {2, 1, L, d}));
  rope.rotate(view(x.data(), {1, 1, L, d}), {}, view(alone.data(), {1, 1, L, d}));
  EXPECT_EQ(std::vector<double>(both.begin(), both.begin() + L * d), alone);
  rope.rotate(view(x.data() + L * d, {1, 1, L, d}), {.start = 90},
              view(alone.data(), {1, 1, L, d}));
  EXPECT_EQ(std::vector<double>(both.begin() + L * d, both.end()), alone);
  // The first rows of a longer sequence turn like its last ones.
  rope.rotate(view(x.data(), {1, 1, L, d}), {.length = 96}, view(alone.data(), {1, 1, L, d}));
  EXPECT_NE(std::vector<double>(both.begin(), both.begin() + L * d), alone);
}

// --- axes ----------------------------------------------------------------------------------------

// Which axis turns which pair: rotate with 1 on one axis and 0 on the others.
std::vector<int64_t> moved_pairs(const Rope& rope, int64_t axis) {
  const int64_t d = rope.config().head_dim, axes = rope.position_axes();
  std::vector<int64_t> position(axes, 0);
  position[axis] = 1;
  std::vector<double> x(d, 1.0), out(d);
  rope.rotate(view(x.data(), {1, 1, 1, d}), {.positions = view(position.data(), {1, 1, axes})},
              view(out.data(), {1, 1, 1, d}));
  std::vector<int64_t> pairs;
  for (int64_t t = 0; t < d / 2; ++t)
    if (out[t] != 1.0) pairs.push_back(t);
  return pairs;
}

TEST(RopeAxes, SectionsAreContiguousOrEveryThird) {
  const Rope contiguous({.head_dim = 16, .axes = "sections", .sections = {2, 3, 3}});
  EXPECT_EQ(moved_pairs(contiguous, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(moved_pairs(contiguous, 1), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(moved_pairs(contiguous, 2), (std::vector<int64_t>{5, 6, 7}));
  const Rope interleaved({.head_dim = 16,
                          .axes = "sections",
                          .sections = {4, 2, 2},
                          .sections_layout = "interleaved"});
  EXPECT_EQ(moved_pairs(interleaved, 0), (std::vector<int64_t>{0, 3, 6, 7}));
  EXPECT_EQ(moved_pairs(interleaved, 1), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(moved_pairs(interleaved, 2), (std::vector<int64_t>{2, 5}));
}

TEST(RopeAxes, TwoAxesShareOrAlternateFrequencies) {
  const Rope split({.head_dim = 8, .base = 100, .axes = "2d_split"});
  EXPECT_EQ(moved_pairs(split, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(moved_pairs(split, 1), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(split.frequencies(0).theta, (std::vector<double>{1, 0.1, 1, 0.1}));
  const Rope alternating({.head_dim = 8, .base = 16, .axes = "2d_alternating"});
  EXPECT_EQ(moved_pairs(alternating, 1), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(alternating.frequencies(0).theta, (std::vector<double>{1, 0.25, 0.5, 0.125}));
}

// --- attention -----------------------------------------------------------------------------------

struct Tensors {
  int64_t B, H, L, d;
  std::vector<double> q = random_values(B * H * L * d, 1), k = random_values(B * H * L * d, 2),
                      v = random_values(B * H * L * d, 3), out = std::vector<double>(q.size());

  View all(std::vector<double>& x) const { return view(x.data(), {B, H, L, d}); }
  std::vector<double> attended(const Encoding& encoding, const AttendOptions& options) {
    attend(all(q), all(k), all(v), encoding, options, all(out));
    return out;
  }
  std::vector<double> by_reference(const Encoding& encoding, const AttendOptions& options) {
    attend_reference(all(q), all(k), all(v), encoding, options, all(out));
    return out;
  }
};

void expect_near(const std::vector<double>& x, const std::vector<double>& y, double tolerance) {
  ASSERT_EQ(x.size(), y.size());
  for (size_t n = 0; n < x.size(); ++n) ASSERT_NEAR(x[n], y[n], tolerance) << n;
}

TEST(RopeAttend, PositionsWithAxesEqualTheReference) {
  Tensors t{2, 2, 30, 16};
  std::vector<int64_t> q_ids(2 * 30 * 3), k_ids(30 * 3);
  for (size_t n = 0; n < q_ids.size(); ++n) q_ids[n] = static_cast<int64_t>(n * 37 % 211);
  for (size_t n = 0; n < k_ids.size(); ++n) k_ids[n] = static_cast<int64_t>(n * 53 % 101) - 20;
  for (const char* layout : {"contiguous", "interleaved"}) {
    const Rope rope({.heads = 2,
                     .head_dim = 16,
                     .axes = "sections",
                     .sections = {4, 2, 2},
                     .sections_layout = layout});
    AttendOptions options;
    options.q_positions = view(q_ids.data(), {2, 30, 3});
    options.k_positions = view(k_ids.data(), {1, 30, 3});
    options.causal = true;
    expect_near(t.attended(rope, options), t.by_reference(rope, options), 1e-12);
  }
}

TEST(RopeAttend, SequencesThatShareKeysAgreeOrFailByName) {
  Tensors t{1, 2, 12, 8};
  const Rope rope({.heads = 2, .head_dim = 8});
  // Two continuations of one prefix: queries 0-5 and 6-11 see the same keys at the same positions.
  std::vector<Sequence> sequences = {
      {.q_begin = 0, .q_len = 6, .k_begin = 0, .k_len = 8, .q_start = 2},
      {.q_begin = 6, .q_len = 6, .k_begin = 2, .k_len = 10, .q_start = 2, .k_start = 2}};
  AttendOptions options;
  options.sequences = sequences;
  expect_near(t.attended(rope, options), t.by_reference(rope, options), 1e-12);
  sequences[1].k_start = 3;
  EXPECT_EQ(message_of([&] { t.attended(rope, options); }),
            "[rope] two sequences share key row 2 of batch row 0 but rotate it differently; give "
            "each its own keys");
}

TEST(RopeAttend, AStepOverUnrotatedKeysEqualsTheFullForward) {
  Tensors t{1, 2, 50, 8};
  for (const char* scaling : {"dynamic", "longrope"}) {
    RopeConfig config{.heads = 2, .head_dim = 8, .scaling = scaling, .factor = 4};
    config.original_max_position = 32;
    config.short_factor = {1, 1, 2, 2};
    config.long_factor = {1, 3, 5, 9};
    const Rope rope(config);
    const std::vector<double> full = t.attended(rope, {.causal = true});
    std::vector<double> step(2 * 8);
    const View last_q(t.q.data() + 49 * 8, DType::f64, Extents{1, 2, 1, 8},
                      Extents{2 * 50 * 8, 50 * 8, 8, 1});
    attend(last_q, t.all(t.k), t.all(t.v), rope, {.q_start = 49, .causal = true},
           view(step.data(), {1, 2, 1, 8}));
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 8; ++c)
        EXPECT_NEAR(step[h * 8 + c], full[(h * 50 + 49) * 8 + c], 1e-13) << scaling;
  }
}

TEST(RopePullback, IsTheTransposeOfPrepare) {
  Tensors t{2, 2, 20, 10};
  for (const char* scaling : {"none", "yarn", "xpos", "dynamic"}) {
    const Rope rope({.heads = 2,
                     .head_dim = 10,
                     .layout = "interleaved",
                     .scaling = scaling,
                     .factor = 4,
                     .original_max_position = 12});
    const int64_t lengths[] = {20, 11};
    const Problem problem =
        make_problem(t.all(t.q), t.all(t.k), t.all(t.v), {.lengths = lengths, .q_start = 5});
    const Prepared prepared = rope.prepare(problem, t.all(t.q), t.all(t.k));
    std::vector<double> dq = random_values(t.q.size(), 7), dk = random_values(t.k.size(), 8);
    // <prepared q, dq'> before equals <q, dq> after, over the rows of the sequences.
    const auto product = [&](const ConstView& x, std::vector<double>& y) {
      double sum = 0;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t i = 0; i < lengths[b]; ++i)
            for (int64_t c = 0; c < 10; ++c)
              sum += element(x, b, h, i, c) * element(t.all(y), b, h, i, c);
      return sum;
    };
    const double q_before = product(prepared.q, dq), k_before = product(prepared.k, dk);
    ParameterGradients gradients;
    rope.pullback(problem, prepared, t.all(dq), t.all(dk), {}, gradients);
    EXPECT_NEAR(product(t.all(t.q), dq), q_before, 1e-11) << scaling;
    EXPECT_NEAR(product(t.all(t.k), dk), k_before, 1e-11) << scaling;
    EXPECT_TRUE(gradients.empty());
  }
}

// --- errors --------------------------------------------------------------------------------------

TEST(RopeErrors, OfRotate) {
  const Rope rope({.head_dim = 8});
  std::vector<float> x(3 * 8), wide(3 * 10);
  std::vector<int64_t> ids(9, 0);
  const View all = view(x.data(), {1, 1, 3, 8});
  EXPECT_EQ(message_of([&] {
              rope.rotate(view(wide.data(), {1, 1, 3, 10}), {}, all);
            }),
            "[rope] x must be (B, H, L, head_dim = 8), got shape (1, 1, 3, 10)");
  EXPECT_EQ(message_of([&] {
              rope.rotate(view(x.data(), {1, 1, 2, 8}), {}, view(x.data() + 8, {1, 1, 2, 8}));
            }),
            "[rope] out must be x itself or apart from it in memory");
  EXPECT_EQ(message_of([&] {
              rope.rotate(all, {.positions = view(ids.data(), {1, 4})}, all);
            }),
            "[rope] positions has shape (1, 4) but must be (1 or 1, 3) or (1 or 1, 3, axes)");
  EXPECT_EQ(message_of([&] {
              rope.rotate(all, {.positions = view(ids.data(), {1, 3, 3})}, all);
            }),
            "[rope] positions has shape (1, 3, 3), 3 numbers for each position, but 1 is needed");
  const Rope xpos({.head_dim = 8, .scaling = "xpos"});
  EXPECT_EQ(message_of([&] { xpos.rotate(all, {.start = 1 << 20}, all); }),
            "[rope] xpos magnitudes leave the range of f32: a position is 1048578 from the origin "
            "0, and at most 32695 is possible");
}

}  // namespace
}  // namespace locant
