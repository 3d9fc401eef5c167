#include "locant/encodings/alibi/alibi.h"

#include <bit>
#include <cmath>

#include "locant/encodings/checks.h"

namespace locant::inline v0 {
namespace {

const AlibiConfig& checked(const AlibiConfig& config) {
  check_heads(Alibi::kName, config);
  const int64_t given = static_cast<int64_t>(config.slopes.size());
  require(given == 0 || given == config.heads, Alibi::kName, "slopes has ", given,
          " entries but there are ", config.heads, " heads");
  for (int64_t h = 0; h < given; ++h)
    require(std::isfinite(config.slopes[h]), Alibi::kName, "slopes[", h, "] must be finite, got ",
            config.slopes[h]);
  return config;
}

// -slope of every head: the exponents of 2 are equidistant.
std::vector<double> falls_of(const AlibiConfig& config) {
  std::vector<double> out;
  if (!config.slopes.empty()) {
    for (const double slope : config.slopes) out.push_back(-slope);
    return out;
  }
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(config.heads)));
  for (int64_t h = 0; h < config.heads; ++h) {
    // Of 2·power heads, the odd ones (counted from 1) lie between those of power heads.
    const double numerator = static_cast<double>(h < power ? 2 * (h + 1) : 2 * (h - power) + 1);
    out.push_back(-std::exp2(-4 * numerator / static_cast<double>(power)));
  }
  return out;
}

}  // namespace

const Fields<AlibiConfig>& Alibi::description() {
  static const Fields<AlibiConfig> fields{
      kName,
      {
          field("heads", &AlibiConfig::heads, "query heads"),
          field("head_dim", &AlibiConfig::head_dim, "width d of a head"),
          field("slopes", &AlibiConfig::slopes, "one per head; empty: powers of 2 as in the paper"),
      }};
  return fields;
}

Alibi::Alibi(const AlibiConfig& config) : Encoding(kName, {}), config_(checked(config)) {
  bias_.name = "bias";
  bias_.first = 0;
  bias_.count = 1;
  bias_.values.assign(config.heads, 0);
  bias_.left_slope = bias_.right_slope = falls_of(config);
}

Prepared Alibi::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k);
  prepared.terms.biases.push_back(bias_);
  return prepared;
}

}  // namespace locant::inline v0
