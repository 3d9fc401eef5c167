// Running one case of the gradients: the fused backward on each ISA against differences of the
// float64 reference, and in the case's type against that.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "locant/attention/stats.h"
#include "locant/check/check.h"
#include "locant/check/embed.h"
#include "locant/check/inputs.h"
#include "locant/check/random.h"
#include "locant/check/runner.h"
#include "locant/core/stored_type.h"
#include "locant/layers/attend_backward.h"

namespace locant::inline v0 {
namespace {

constexpr double kStep = 3e-5;
constexpr int64_t kLargeTensor = 2048;  // numbers, from which one direction has to do
constexpr double kTolerance = 1e-8, kRoundingTolerance = 2e-5;
// A tensor whose gradient is small beside the others' is a sum of terms that cancel, as the biases
// of all buckets do; its roundings are of the size of the terms.
constexpr double kCancelled = 0.1;
constexpr double kShakes = 4;  // roundings of out that a gradient may feel

using Numbers = std::vector<double>;

// Everything that has a gradient.
std::vector<std::pair<std::string, View>> tensors_of(const CheckInputs<double>& inputs) {
  std::vector<std::pair<std::string, View>> out = {
      {"q", inputs.q}, {"k", inputs.k}, {"v", inputs.v}};
  out.insert(out.end(), inputs.parameters.begin(), inputs.parameters.end());
  return out;
}

// (B, H, L, d) of a type: contiguous, or (B, L, H, d) in memory for the other layouts.
struct Stored {
  Tensor memory;
  View view;

  Stored(DType dtype, const Extents& shape, LayoutKind layout) : memory(dtype, shape) {
    const auto [B, H, L, d] = shape;
    view = memory.view();
    if (layout != LayoutKind::bhld) view.strides = {L * H * d, d, H * d, 1};
  }
  void fill(const Numbers& values) const {
    for (int64_t n = 0; const double value : values) {
      const auto [B, H, L, d] = view.shape;
      set_element(view, value, n / (H * L * d), n / (L * d) % H, n / d % L, n % d);
      ++n;
    }
  }
};

// Gradients of q, k, v and the parameters by attend_backward. `rounded_out`, if not empty, takes
// the place of what attend gave.
template <class Real>
std::vector<Numbers> fused_gradients(const CheckCase& check, const CheckInputs<Real>& inputs,
                                     const Numbers& dout_values, const Numbers& rounded_out,
                                     std::string& failure) {
  AttendOptions options = inputs.options;
  const Extents& shape = inputs.out.shape;
  Tensor lse(dtype_of<ComputedIn<Real>>(), std::span(shape).first(3));
  options.lse = lse.view();
  attend(inputs.q, inputs.k, inputs.v, *inputs.encoding, options, inputs.out);
  const DType type = inputs.out.dtype;
  const Stored dout(type, shape, check.layout), dq(type, inputs.q.shape, check.layout);
  const Stored dk(type, inputs.k.shape, check.layout), dv(type, inputs.v.shape, check.layout);
  const Stored given(type, shape, check.layout);
  if (!rounded_out.empty()) given.fill(rounded_out);
  dout.fill(dout_values);
  for (const Stored* x : {&dq, &dk, &dv}) x->fill(Numbers(x->view.size(), 12345));
  const int64_t before = stats().backward_calls;
  const ParameterGradients parameters =
      attend_backward(inputs.q, inputs.k, inputs.v, *inputs.encoding, options,
                      {rounded_out.empty() ? inputs.out : given.view, options.lse}, dout.view,
                      dq.view, dk.view, dv.view);
  if (stats().backward_calls != before + 1) failure += "did not take the fused backward; ";
  std::vector<Numbers> out = {dense(dq.view), dense(dk.view), dense(dv.view)};
  for (const Parameter& parameter : inputs.encoding->parameters())
    out.push_back(dense(parameters.at(parameter.name).view()));
  return out;
}

// d(out) in numbers of the case's type. Where masks push a whole row of scores far down, lse has no
// digits left for the number of keys, and no gradient can come from it: such rows get zeros.
Numbers make_dout(const CheckCase& check, const CheckInputs<double>& inputs) {
  AttendOptions options = inputs.options;
  Tensor out(DType::f64, inputs.out.shape), lse(DType::f64, std::span(inputs.out.shape).first(3));
  options.lse = lse.view();
  attend_reference(inputs.q, inputs.k, inputs.v, *inputs.encoding, options, out.view());
  Random random(static_cast<uint64_t>(check.number) * 8 + 7);
  Numbers dout(inputs.out.size());
  for (double& x : dout) x = rounded(random.symmetric(), check.dtype);
  const int64_t width = inputs.out.shape[3];
  const double* row = lse.view().at<double>();
  for (size_t n = 0; n < dout.size(); ++n)
    if (row[static_cast<int64_t>(n) / width] < -1e3) dout[n] = 0;
  return dout;
}

class Differences {
 public:
  Differences(const CheckInputs<double>& inputs, const Numbers& dout)
      : inputs_(inputs), dout_(dout), out_(DType::f64, inputs.out.shape) {}

  // Of <out, dout> along `direction` in one of the inputs' tensors.
  double along(const View& x, const Numbers& direction) {
    const Numbers before = dense(x);
    const auto at = [&](double step) {
      Numbers moved = before;
      for (size_t n = 0; n < moved.size(); ++n) moved[n] += step * direction[n];
      assign(x, moved);
      return value();
    };
    const double near = at(kStep) - at(-kStep), far = at(2 * kStep) - at(-2 * kStep);
    assign(x, before);
    return (8 * near - far) / (12 * kStep);
  }

 private:
  double value() {
    attend_reference(inputs_.q, inputs_.k, inputs_.v, *inputs_.encoding, inputs_.options,
                     out_.view());
    const double* out = out_.view().at<double>();
    return std::inner_product(dout_.begin(), dout_.end(), out, 0.0);
  }
  static void assign(const View& x, const Numbers& values) {
    const auto [A, B, C, D] = x.shape;
    for (int64_t n = 0; n < x.size(); ++n)
      *x.at<double>(n / (B * C * D), n / (C * D) % B, n / D % C, n % D) = values[n];
  }

  const CheckInputs<double>& inputs_;
  const Numbers& dout_;
  Tensor out_;
};

// Random directions that share out the elements; each element is in one of them.
struct Probe {
  size_t tensor;
  Numbers direction;
  double wanted;  // the difference along it
};

std::vector<Probe> make_probes(const CheckCase& check, const CheckInputs<double>& inputs,
                               const Numbers& dout) {
  Differences differences(inputs, dout);
  Random random(static_cast<uint64_t>(check.number) * 8);
  std::vector<Probe> out;
  const auto tensors = tensors_of(inputs);
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t size = tensors[t].second.size();
    int64_t probes = check.probes == 0 ? size : std::min(check.probes, size);
    if (size > kLargeTensor) probes = 1;
    for (int64_t p = 0; p < probes; ++p) {
      Numbers direction(size);
      for (int64_t n = p; n < size; n += probes) direction[n] = random.symmetric();
      const double wanted = differences.along(tensors[t].second, direction);
      out.push_back({t, std::move(direction), wanted});
    }
  }
  return out;
}

double largest(const Numbers& x) {
  double out = 0;
  for (const double value : x) out = std::max(out, std::abs(value));
  return out;
}

// Worst error relative to the tolerance's unit; infinite for a NaN.
double difference_error(const Probe& probe, const Numbers& gradient) {
  double along = 0, square = 0;
  for (size_t n = 0; n < gradient.size(); ++n) {
    if (!std::isfinite(gradient[n])) return std::numeric_limits<double>::infinity();
    along += gradient[n] * probe.direction[n];
    if (probe.direction[n] != 0) square += gradient[n] * gradient[n];
  }
  return std::abs(along - probe.wanted) / (1 + std::sqrt(square));
}

double worst_difference(const Numbers& x, const Numbers& wanted) {
  double worst = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    if (!std::isfinite(x[n])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(x[n] - wanted[n]));
  }
  return worst;
}

// Every number one float32 rounding up or down.
Numbers shaken(Numbers x, uint64_t seed) {
  Random random(seed);
  for (double& value : x) value *= 1 + (random.symmetric() < 0 ? -0x1p-24 : 0x1p-24);
  return x;
}

void check_embed(const CheckCase& check, const Encoding& encoding, GradientResult& result) {
  for (const EmbedGradient& gradient : embed_gradients(check, encoding)) {
    result.failure += gradient.failure;
    const double error = std::abs(gradient.got - gradient.wanted) / (1 + gradient.size);
    judge("embed's gradient", error, check.dtype == DType::f64 ? 1e-12 : 1e-6, result);
  }
}

template <class Real>
std::vector<GradientResult> run(const CheckCase& check, std::span<const std::string> isas) {
  const CheckInputs<double> wide(check);
  const CheckInputs<Real> stored(check);
  const Numbers dout = make_dout(check, wide);
  const std::vector<Probe> probes = make_probes(check, wide, dout);
  const auto tensors = tensors_of(wide);
  std::vector<GradientResult> results;
  for (const std::string& name : isas) {
    GradientResult& result = results.emplace_back();
    result.isa = name;
    for (const auto& [tensor, values] : tensors) result.errors.push_back({tensor});
    try {
      const IsaScope scope(name);
      const std::vector<Numbers> exact = fused_gradients(check, wide, dout, {}, result.failure);
      for (const Probe& probe : probes) {
        double& worst = result.errors[probe.tensor].differences;
        worst = std::max(worst, difference_error(probe, exact[probe.tensor]));
      }
      const std::vector<Numbers> got = fused_gradients(check, stored, dout, {}, result.failure);
      // The same out for both: it is an input here. One rounding of it tells how far the rows of dS
      // may be from their sum, zero, and what a parameter makes of that.
      const bool rounds = check.out_dtype != DType::f64;
      const Numbers out = dense(stored.out);
      const auto given = [&](const Numbers& values) {
        return rounds ? fused_gradients(check, wide, dout, values, result.failure) : exact;
      };
      const std::vector<Numbers> wanted = given(out);
      const std::vector<Numbers> other = given(shaken(out, static_cast<uint64_t>(check.number)));
      double unit = 0;
      for (const Numbers& gradient : exact) unit = std::max(unit, kCancelled * largest(gradient));
      for (size_t t = 0; t < tensors.size(); ++t) {
        GradientError& error = result.errors[t];
        const bool parameter = t >= 3;  // these are never stored in 16 bits
        const Numbers unrounded =
            before_rounding(got[t], wanted[t], parameter ? DType::f32 : check.out_dtype);
        const double size = std::max(unit, largest(wanted[t])) +
                            kShakes / kRoundingTolerance * worst_difference(other[t], wanted[t]);
        const double worst = worst_difference(unrounded, wanted[t]);
        error.rounding = worst == 0 ? 0 : worst / size;
        judge("d" + error.tensor, error.differences, kTolerance, result);
        judge("d" + error.tensor + " in " + name_of(check.dtype), error.rounding,
              kRoundingTolerance, result);
      }
      if (wide.encoding->embed_dim() > 0) check_embed(check, *stored.encoding, result);
    } catch (const std::exception& error) {
      result.ratio = std::numeric_limits<double>::infinity();
      result.failure += error.what();
    }
  }
  return results;
}

}  // namespace

std::vector<GradientResult> run_gradient_check(const CheckCase& check,
                                               std::span<const std::string> isas) {
  std::vector<GradientResult> results =
      with_stored_type(check.dtype, [&](auto real) { return run<decltype(real)>(check, isas); });
  for (GradientResult& result : results) finish(check, "--gradients ", result);
  return results;
}

}  // namespace locant::inline v0
