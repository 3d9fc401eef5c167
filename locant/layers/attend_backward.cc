#include "locant/layers/attend_backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "locant/attention/checks.h"
#include "locant/attention/fused_backward.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "attend_backward";

struct Gradients {
  View q, k, v;
};

void check_call(const ForwardResult& forward, const ConstView& dout, const ConstView& mask,
                const Gradients& gradients) {
  const auto& [q, k, v, out, lse] = forward;
  check_types(kScope, q, k, v);
  const int64_t shape[] = {q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  const std::span<const int64_t> rows(shape, 3);
  require(lse.data != nullptr || lse.rank > 0, kScope,
          "lse is needed: ask attend() for it with AttendOptions::lse");
  check_operand(kScope, "out", out, shape, q.dtype, Precision::stored_or_computed);
  check_operand(kScope, "lse", lse, rows, q.dtype, Precision::computed);
  check_operand(kScope, "dout", dout, shape, q.dtype, Precision::stored_or_computed);
  const std::pair<const char*, View> results[] = {
      {"dq", gradients.q}, {"dk", gradients.k}, {"dv", gradients.v}};
  const std::pair<const char*, ConstView> operands[] = {
      {"q", q}, {"k", k}, {"v", v}, {"out", out}, {"lse", lse}, {"dout", dout}, {"mask", mask}};
  for (size_t n = 0; n < std::size(results); ++n) {
    const auto& [name, result] = results[n];
    const ConstView& like = operands[n].second;
    check_result(kScope, name, result, std::span(like.shape.data(), 4), q.dtype,
                 Precision::stored_or_computed);
    for (const auto& [other, operand] : operands) check_apart(kScope, name, result, other, operand);
    for (size_t m = 0; m < n; ++m)
      check_apart(kScope, name, result, results[m].first, results[m].second);
  }
}

// A key's gradient is written once, by the sequence that it belongs to.
void check_own_keys(const Problem& problem) {
  std::vector<const Sequence*> order;
  for (const Sequence& s : problem.sequences)
    if (s.k_len > 0) order.push_back(&s);
  std::sort(order.begin(), order.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->batch, a->k_begin) < std::pair(b->batch, b->k_begin);
  });
  for (size_t n = 1; n < order.size(); ++n) {
    const Sequence &a = *order[n - 1], &b = *order[n];
    require(a.batch != b.batch || a.k_begin + a.k_len <= b.k_begin, kScope, "sequences ",
            &a - problem.sequences.data(), " and ", &b - problem.sequences.data(),
            " share key row ", b.k_begin, " of batch row ", b.batch,
            ": gradients need each key in one sequence");
  }
}

// value(b, h, i, c) to every element.
template <class Value>
void fill(const View& x, const Value& value) {
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      for (int64_t i = 0; i < x.shape[2]; ++i)
        for (int64_t c = 0; c < x.shape[3]; ++c) set_element(x, value(b, h, i, c), b, h, i, c);
}

// Where the gradient of prepared q or k goes before it is pulled back. One in 16 bits is rounded
// only once: what the encoding turned in float32 is turned back in float32.
class Pulled {
 public:
  Pulled(const View& target, DType prepared) : view_(target), target_(target) {
    if (!is_half(target.dtype) || is_half(prepared)) return;
    wide_ = Tensor(prepared, target.shape);
    view_ = wide_.view();
  }
  const View& view() const { return view_; }
  void store() const {
    if (wide_) fill(target_, [&](auto... at) { return element(view_, at...); });
  }

 private:
  Tensor wide_;
  View view_, target_;
};

}  // namespace

ParameterGradients attend_backward(const ConstView& q, const ConstView& k, const ConstView& v,
                                   const Encoding& encoding, const AttendOptions& options,
                                   const AttendResult& forward, const ConstView& dout,
                                   const View& dq, const View& dk, const View& dv) {
  const Problem problem = make_problem(q, k, v, options);
  check_call({q, k, v, forward.out, forward.lse}, dout, options.mask, {dq, dk, dv});
  check_own_keys(problem);
  encoding.check_problem(problem);
  ParameterGradients gradients = encoding.zero_gradients();
  if (dq.size() == 0 || dk.size() == 0) {  // no pair of a query and a key
    for (const View& x : {dq, dk, dv}) fill(x, [](auto...) { return 0.0; });
    return gradients;
  }
  const Prepared prepared = encoding.prepare(problem, q, k);
  validate(prepared.terms, problem.heads, problem.head_dim, problem.value_dim);
  require(!(problem.q_positions || problem.k_positions) || !prepared.terms.depend_on_positions(),
          kScope, "position ids with the terms of ", encoding.name(),
          " take the materialised path, which has no gradients; give q_start and k_start instead");
  const Pulled pulled_q(dq, prepared.q.dtype), pulled_k(dk, prepared.k.dtype);
  const TermGradients dterms =
      fused_backward(problem, prepared.terms, {prepared.q, prepared.k, v, forward.out, forward.lse},
                     dout, options.tiling, pulled_q.view(), pulled_k.view(), dv);
  encoding.pullback(problem, prepared, pulled_q.view(), pulled_k.view(), dterms, gradients);
  pulled_q.store();
  pulled_k.store();
  return gradients;
}

}  // namespace locant::inline v0
