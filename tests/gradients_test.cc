// Gradients of every encoding: the cases of `locant check --gradients`, and what attend_backward
// refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "locant/check/check.h"
#include "locant/kernels/isa.h"
#include "locant/layers/attend_backward.h"
#include "tests/attention_case.h"
#include "tests/every_encoding.h"
#include "tests/stored_tensor.h"

namespace locant {
namespace {

class GradientsOf : public testing::TestWithParam<std::string> {};

// All cases on the best instruction set, every fourth on the others.
TEST_P(GradientsOf, EqualDifferencesOfTheReference) {
  const std::vector<std::string> all = available_isas(), best = {all.front()};
  for (const CheckCase& check : gradient_cases(find_encoding(GetParam())))
    for (const GradientResult& result : run_gradient_check(check, check.number % 4 ? best : all))
      EXPECT_TRUE(result.passed) << result.failure << "\n  " << describe(check)
                                 << "\n  repeat: " << result.command;
}

INSTANTIATE_TEST_SUITE_P(Registry, GradientsOf, testing::ValuesIn(every_encoding()),
                         [](const auto& name) { return name.param; });

// A call with its gradients' tensors.
struct Backward {
  AttentionCase forward;
  StoredTensor dout, dq, dk, dv;

  explicit Backward(const std::string& encoding, DType dtype = DType::f32, Sizes s = kSizes)
      : forward(find_encoding(encoding), dtype, s),
        dout(computed_in(dtype), {s.batch, s.heads, s.q_len, s.dim}, 77),
        dq(dtype, {s.batch, s.heads, s.q_len, s.dim}),
        dk(dtype, {s.batch, s.heads, s.k_len, s.dim}),
        dv(dtype, {s.batch, s.heads, s.k_len, s.dim}) {}

  ParameterGradients run(const AttendResult& result) {
    return attend_backward(forward.q.view(), forward.k.view(), forward.v.view(), *forward.encoding,
                           forward.options, result, dout.view(), dq.view(), dk.view(), dv.view());
  }
  ParameterGradients run() {
    forward.run();
    return run({forward.out.view(), forward.lse.view()});
  }

  static constexpr Sizes kSizes{.batch = 2, .heads = 2, .q_len = 9, .k_len = 9, .dim = 8};
};

template <class F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(AttendBackward, NeedsLse) {
  Backward b("none");
  b.forward.run();
  EXPECT_EQ(message_of([&] {
              b.run({b.forward.out.view(), {}});
            }),
            "[attend_backward] lse is needed: ask attend() for it with AttendOptions::lse");
}

TEST(AttendBackward, ChecksShapesAndTypesByName) {
  Backward b("none");
  b.forward.run();
  const View out = b.forward.out.view(), lse = b.forward.lse.view();
  const StoredTensor short_lse(DType::f32, {2, 2, 8}), double_lse(DType::f64, {2, 2, 9});
  EXPECT_EQ(message_of([&] {
              b.run({out, short_lse.view()});
            }),
            "[attend_backward] lse has shape (2, 2, 8) but must be (2, 2, 9)");
  EXPECT_EQ(message_of([&] {
              b.run({out, double_lse.view()});
            }),
            "[attend_backward] lse is f64 but must be f32 as q is f32");
  EXPECT_EQ(message_of([&] {
              b.run({lse, lse});
            }),
            "[attend_backward] out has shape (2, 2, 9) but must be (2, 2, 9, 8)");
  b.dk = StoredTensor(DType::f32, {2, 1, 9, 8});
  EXPECT_EQ(message_of([&] { b.run(); }),
            "[attend_backward] dk has shape (2, 1, 9, 8) but must be (2, 2, 9, 8)");
}

TEST(AttendBackward, GradientsStandApartFromEverythingElse) {
  Backward b("none");
  b.forward.run();
  const auto with = [&](const View& dq, const View& dv) {
    return message_of([&] {
      attend_backward(b.forward.q.view(), b.forward.k.view(), b.forward.v.view(),
                      *b.forward.encoding, b.forward.options,
                      {b.forward.out.view(), b.forward.lse.view()}, b.dout.view(), dq, b.dk.view(),
                      dv);
    });
  };
  EXPECT_EQ(with(b.dout.view(), b.dv.view()), "[attend_backward] dq overlaps dout in memory");
  EXPECT_EQ(with(b.dq.view(), b.dq.view()), "[attend_backward] dv overlaps dq in memory");
  EXPECT_EQ(with(b.dq.view(), b.dv.view()), "no error");
}

TEST(AttendBackward, RefusesWhatTheFusedBackwardCannotDo) {
  Backward b("t5");
  const std::vector<int64_t> ids = {4, 1, 0, 2, 3, 8, 7, 6, 5};
  b.forward.options.q_positions = view(ids.data(), {1, 9});
  EXPECT_TRUE(message_of([&] { b.run(); })
                  .starts_with("[attend_backward] position ids with the terms of t5 take the "
                               "materialised path"));
  Backward shared("none");
  const std::vector<Sequence> sequences = {{.q_len = 4, .k_len = 6},
                                           {.q_begin = 4, .q_len = 5, .k_begin = 5, .k_len = 4}};
  shared.forward.options.sequences = sequences;
  EXPECT_EQ(message_of([&] { shared.run(); }),
            "[attend_backward] sequences 0 and 1 share key row 5 of batch row 0: gradients need "
            "each key in one sequence");
}

TEST(AttendBackward, DropoutMustBeAProbability) {
  for (const double p : {-0.1, 1.0, std::nan("")}) {
    Backward b("none");
    b.forward.options.dropout = {.p = p};
    EXPECT_TRUE(
        message_of([&] { b.run(); }).starts_with("[attend] dropout must be >= 0 and < 1, got "))
        << p;
  }
}

// No queries, no keys, no batch: zeros, and of every parameter too.
TEST(AttendBackward, WithoutPairsGradientsAreZeros) {
  for (const EncodingEntry& entry : encodings())
    for (const Sizes& s : {Sizes{.q_len = 0, .k_len = 3}, Sizes{.q_len = 3, .k_len = 0},
                           Sizes{.batch = 0, .q_len = 3, .k_len = 3}}) {
      Backward b(entry.name, DType::f32, s);
      for (StoredTensor* x : {&b.dq, &b.dk, &b.dv})
        for (int64_t n = 0; n < x->size(); ++n) x->set(n, 5);
      const ParameterGradients gradients = b.run();
      for (const StoredTensor* x : {&b.dq, &b.dk, &b.dv})
        for (const double value : x->values()) EXPECT_EQ(value, 0) << entry.name;
      EXPECT_EQ(gradients.size(), b.forward.encoding->parameters().size());
    }
}

// NaN in rows of padding reaches no gradient, and their own are zeros.
TEST(AttendBackward, PaddingHasZerosAndDoesNotLeak) {
  const std::vector<int64_t> lengths = {9, 5};
  for (const EncodingEntry& entry : encodings()) {
    Backward clean(entry.name), dirty(entry.name);
    for (Backward* b : {&clean, &dirty}) b->forward.options.lengths = lengths;
    for (StoredTensor* x : {&dirty.forward.q, &dirty.forward.k, &dirty.forward.v, &dirty.dout})
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t n = 5 * 8; n < 9 * 8; ++n)
          x->set((2 + h) * 9 * 8 + n, std::numeric_limits<double>::quiet_NaN());
    const ParameterGradients a = clean.run(), b = dirty.run();
    EXPECT_EQ(clean.dq.values(), dirty.dq.values()) << entry.name;
    EXPECT_EQ(clean.dk.values(), dirty.dk.values()) << entry.name;
    EXPECT_EQ(clean.dv.values(), dirty.dv.values()) << entry.name;
    EXPECT_EQ(dirty.dk.get((2 * 9 + 7) * 8), 0) << entry.name;
    for (const auto& [name, gradient] : a)
      for (int64_t n = 0; n < gradient.view().size(); ++n)
        ASSERT_EQ(gradient.view().at<float>()[n], b.at(name).view().at<float>()[n]) << name;
  }
}

// An encoding of a program's own that says nothing of gradients must not get wrong ones.
class Silent : public Encoding {
 public:
  Silent() : Encoding("silent", {{.name = "w", .shape = {1}, .shape_in_words = "1", .doc = ""}}) {
    init(0);
  }
  FieldValues fields() const override { return {}; }
  Prepared prepare(const Problem&, const ConstView& q, const ConstView& k) const override {
    return {.q = q, .k = k, .terms = {}, .storage = {}};
  }
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override {}
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override {}
};

TEST(AttendBackward, EncodingsWithoutPullbackAreRefusedByName) {
  Backward b("none");
  b.forward.encoding = std::make_unique<Silent>();
  EXPECT_EQ(message_of([&] { b.run(); }),
            "[silent] has no gradients: it does not say how with pullback()");
}

}  // namespace
}  // namespace locant
