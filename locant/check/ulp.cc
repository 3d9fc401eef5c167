#include "locant/check/ulp.h"

#include <algorithm>
#include <cmath>

#include "locant/check/inputs.h"
#include "locant/check/runner.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kLength = 96;
constexpr int64_t kPositions[] = {0, 1 << 10, 1 << 16, 1 << 20};

// The distance from |x| to the next float32.
double unit_at(double x) {
  const auto size = static_cast<float>(std::abs(x));
  return static_cast<double>(std::nextafter(size, INFINITY)) - static_cast<double>(size);
}

// Appends the errors of all elements, head by head of `size` elements.
void add_errors(const std::vector<double>& got, const std::vector<double>& wanted, int64_t size,
                std::vector<double>& errors) {
  for (size_t head = 0; head < wanted.size(); head += static_cast<size_t>(size)) {
    double largest = 0;
    for (int64_t n = 0; n < size; ++n) largest = std::max(largest, std::abs(wanted[head + n]));
    for (int64_t n = 0; n < size; ++n)
      errors.push_back(std::abs(got[head + n] - wanted[head + n]) / unit_at(largest));
  }
}

CheckCase case_at(const EncodingEntry& entry, const FieldValues& fields, int64_t position,
                  int64_t number) {
  CheckCase out;
  out.encoding = entry.name;
  out.number = number;
  out.fields = fields;
  const FieldValues all = entry.make(fields)->fields();
  out.heads = out.kv_heads = std::get<int64_t>(all.at("heads"));
  out.head_dim = std::get<int64_t>(all.at("head_dim"));
  out.q_len = out.k_len = kLength;
  out.q_start = out.k_start = position;
  return out;
}

UlpResult summary(const std::string& isa, std::vector<double>& errors) {
  std::sort(errors.begin(), errors.end());
  const size_t at = errors.size() * 99 / 100;
  return {isa, static_cast<int64_t>(errors.size()), errors.back(), errors[at]};
}

}  // namespace

std::vector<UlpResult> measure_ulp(const EncodingEntry& entry, std::span<const std::string> isas) {
  std::vector<std::vector<double>> errors(isas.size() + 1);
  int64_t number = 0;
  for (const FieldValues& fields : entry.cases)
    for (const int64_t position : kPositions) {
      const CheckInputs<float> inputs(case_at(entry, fields, position, number++));
      const auto answer = [&](auto attend_by, auto real) {
        std::vector<decltype(real)> values(static_cast<size_t>(inputs.out.size()));
        attend_by(inputs.q, inputs.k, inputs.v, *inputs.encoding, inputs.options,
                  View(values.data(), dtype_of<decltype(real)>(), inputs.out.shape));
        return std::vector<double>(values.begin(), values.end());
      };
      const std::vector<double> wanted = answer(attend_reference, 0.0);
      const int64_t head = inputs.out.shape[2] * inputs.out.shape[3];
      for (size_t n = 0; n < isas.size(); ++n) {
        const IsaScope scope(isas[n]);
        add_errors(answer(attend, 0.0f), wanted, head, errors[n]);
      }
      add_errors(answer(attend_naive_f32, 0.0f), wanted, head, errors.back());
    }
  std::vector<UlpResult> out;
  for (size_t n = 0; n < isas.size(); ++n) out.push_back(summary(isas[n], errors[n]));
  out.push_back(summary("loops", errors.back()));
  return out;
}

}  // namespace locant::inline v0
