// Running one case: fused attention on each ISA against the float64 reference.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <sstream>

#include "locant/attention/stats.h"
#include "locant/check/check.h"
#include "locant/check/embed.h"
#include "locant/check/inputs.h"
#include "locant/check/runner.h"
#include "locant/core/stored_type.h"

namespace locant::inline v0 {
namespace {

// out (B, H, Lq, d) and lse (B, H, Lq), dense.
struct Answer {
  std::vector<double> out, lse;
};

using AttendFunction = void (*)(const ConstView&, const ConstView&, const ConstView&,
                                const Encoding&, const AttendOptions&, const View&);

// Calls `attend_by` with lse into `out`, where lse has the type Real.
template <class Real, class Inputs>
Answer answer_of(AttendFunction attend_by, const Inputs& inputs, const View& out) {
  AttendOptions options = inputs.options;
  std::vector<Real> lse(out.shape[0] * out.shape[1] * out.shape[2], Real(12345));
  options.lse = view(lse.data(), {out.shape[0], out.shape[1], out.shape[2]});
  attend_by(inputs.q, inputs.k, inputs.v, *inputs.encoding, options, out);
  return {dense(out), std::vector<double>(lse.begin(), lse.end())};
}

template <class Inputs>
Answer reference_answer(const Inputs& inputs) {
  std::vector<double> values(inputs.out.size());
  return answer_of<double>(attend_reference, inputs,
                           View(values.data(), DType::f64, inputs.out.shape));
}

template <class Inputs>
Answer naive_answer(const Inputs& inputs) {
  std::vector<float> values(inputs.out.size());
  return answer_of<float>(attend_naive_f32, inputs,
                          View(values.data(), DType::f32, inputs.out.shape));
}

// Largest |x - wanted|; infinite if one is NaN or infinite where the other is not. Values beyond 1
// of `relative` comparisons count by their size: an lse of -FLT_MAX cannot be right to 1e-6.
double worst_error(const std::vector<double>& x, const std::vector<double>& wanted, bool relative) {
  double worst = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    if (std::isnan(wanted[n]) && std::isnan(x[n])) continue;
    if (x[n] == wanted[n]) continue;
    if (!std::isfinite(x[n]) || !std::isfinite(wanted[n]))
      return std::numeric_limits<double>::infinity();
    const double unit = relative ? std::max(1.0, std::abs(wanted[n])) : 1.0;
    worst = std::max(worst, std::abs(x[n] - wanted[n]) / unit);
  }
  return worst;
}

double largest(const std::vector<double>& x) {
  double out = 0;
  for (const double value : x)
    if (std::isfinite(value)) out = std::max(out, std::abs(value));
  return out;
}

struct Tolerances {
  double out = 0, lse = 0;
};

Tolerances tolerances_f32(const Answer& naive, const Answer& wanted) {
  return {2 * worst_error(naive.out, wanted.out, false) + 1e-6,
          2 * worst_error(naive.lse, wanted.lse, true) + 1e-6};
}

Tolerances tolerances_f64(const Answer& wanted) {
  return {1e-12 * std::max(1.0, largest(wanted.out)), 1e-12};
}

// Adds what is wrong to result.failure and the error to result.ratio.
void compare(const char* what, const std::vector<double>& x, const std::vector<double>& wanted,
             bool relative, double tolerance, CheckResult& result) {
  if (!std::isfinite(tolerance)) {
    result.failure += std::string("the naive ") + what + " is no yardstick: it is not finite; ";
    return;
  }
  judge(what, worst_error(x, wanted, relative), tolerance, result);
}

template <class Real>
std::vector<CheckResult> run(const CheckCase& check, std::span<const std::string> isas) {
  const CheckInputs<Real> inputs(check);
  const Answer wanted = reference_answer(inputs);
  const Tolerances tolerances = check.dtype == DType::f64
                                    ? tolerances_f64(wanted)
                                    : tolerances_f32(naive_answer(inputs), wanted);
  std::vector<CheckResult> results;
  for (const std::string& name : isas) {
    CheckResult& result = results.emplace_back();
    result.isa = name;
    try {
      const IsaScope scope(name);
      const Stats before = stats();
      const Answer got = answer_of<ComputedIn<Real>>(attend, inputs, inputs.out);
      if (stats().fused_calls != before.fused_calls + 1)
        result.failure += "did not take the fused kernel; ";
      if (isa() != name) result.failure += "ran on " + isa() + "; ";
      compare("out", before_rounding(got.out, wanted.out, check.out_dtype), wanted.out, false,
              tolerances.out, result);
      compare("lse", got.lse, wanted.lse, true, tolerances.lse, result);
      if (inputs.encoding->embed_dim() > 0)
        for (const EmbedAnswer& answer : embed_answers(check, *inputs.encoding)) {
          compare("embed", answer.got, answer.wanted, true, answer.tolerance, result);
          result.failure += answer.failure;
        }
    } catch (const std::exception& error) {
      result.ratio = std::numeric_limits<double>::infinity();
      result.failure += error.what();
    }
  }
  return results;
}

// Half the distance between numbers of a 16-bit type at x; 0 for other types, which are not rounded
// once more when stored.
double half_step(DType dtype, double x) {
  if (!is_half(dtype) || !std::isfinite(x)) return 0;
  const int fraction_bits = dtype == DType::f16 ? 10 : 7;
  const int lowest_exponent = dtype == DType::f16 ? -14 : -126;
  const int exponent = x == 0 ? lowest_exponent : std::max(std::ilogb(x), lowest_exponent);
  return std::ldexp(0.5, exponent - fraction_bits);
}

}  // namespace

std::vector<double> before_rounding(std::vector<double> x, const std::vector<double>& wanted,
                                    DType dtype) {
  for (size_t n = 0; n < x.size(); ++n) {
    const double step = half_step(dtype, x[n]);
    x[n] += std::clamp(wanted[n] - x[n], -step, step);
  }
  return x;
}

void judge(const std::string& what, double error, double tolerance, CheckResult& result) {
  result.ratio = std::max(result.ratio, error / tolerance);
  if (error <= tolerance) return;
  std::ostringstream text;
  text << what << " error " << error << ", tolerance " << tolerance << "; ";
  result.failure += text.str();
}

void finish(const CheckCase& check, const std::string& flags, CheckResult& result) {
  const std::string number = std::to_string(check.number);
  result.number = check.number;
  result.name = check.encoding + "/" + number + "/" + result.isa;
  result.command =
      "locant check " + check.encoding + " " + flags + "--case " + number + " --isa " + result.isa;
  if (result.failure.ends_with("; ")) result.failure.resize(result.failure.size() - 2);
  result.passed = result.failure.empty();
}

std::vector<CheckResult> run_check(const CheckCase& check, std::span<const std::string> isas) {
  std::vector<CheckResult> results =
      with_stored_type(check.dtype, [&](auto real) { return run<decltype(real)>(check, isas); });
  for (CheckResult& result : results) finish(check, "", result);
  return results;
}

}  // namespace locant::inline v0
