#include "locant/encodings/kerple/kerple.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "locant/encodings/checks.h"

namespace locant::inline v0 {
namespace {

constexpr double kSmallest = 0.01;
// Offsets that one call may span, so that wild position ids are an error and not an allocation.
constexpr int64_t kMaxOffsets = int64_t{1} << 24;

}  // namespace

const Fields<KerpleConfig>& Kerple::description() {
  static const Fields<KerpleConfig> fields{
      kName,
      {
          field("heads", &KerpleConfig::heads, "query heads"),
          field("head_dim", &KerpleConfig::head_dim, "width d of a head"),
      }};
  return fields;
}

Kerple::Kerple(const KerpleConfig& config)
    : Encoding(kName, {{.name = "r1",
                        .shape = {config.heads},
                        .shape_in_words = "heads",
                        .doc = "the penalty's size"},
                       {.name = "r2",
                        .shape = {config.heads},
                        .shape_in_words = "heads",
                        .doc = "what a distance is multiplied by"}}),
      config_(config) {
  check_heads(kName, config);
}

Prepared Kerple::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k);
  const Problem::Offsets offsets = problem.visible_offsets();
  require(offsets.last - offsets.first < kMaxOffsets, kName, "positions span offsets from ",
          offsets.first, " to ", offsets.last, "; at most ", kMaxOffsets, " are possible");
  OffsetBias bias;
  bias.name = "bias";
  bias.first = offsets.first;
  bias.count = offsets.last - offsets.first + 1;
  const ConstView r1 = parameter("r1"), r2 = parameter("r2");
  for (int64_t h = 0; h < config_.heads; ++h) {
    const double size = std::max(element(r1, h), kSmallest);
    const double factor = std::max(element(r2, h), kSmallest);
    for (int64_t offset = offsets.first; offset <= offsets.last; ++offset)
      bias.values.push_back(-size * std::log1p(factor * static_cast<double>(std::abs(offset))));
  }
  prepared.terms.biases.push_back(std::move(bias));
  return prepared;
}

// d/dr1 = -ln(1 + r2·n), d/dr2 = -r1·n/(1 + r2·n) at distance n; 0 where a value counts as 0.01.
void Kerple::pullback(const Problem&, const Prepared& prepared, const View&, const View&,
                      const TermGradients& dterms, ParameterGradients& gradients) const {
  const OffsetBias& bias = prepared.terms.biases[0];
  const std::vector<double>& dbias = dterms.biases[0].values;  // (heads, offsets)
  const View dr1 = gradients.at("r1").view(), dr2 = gradients.at("r2").view();
  const ConstView r1 = parameter("r1"), r2 = parameter("r2");
  for (int64_t h = 0; h < config_.heads; ++h) {
    const double size = std::max(element(r1, h), kSmallest);
    const double factor = std::max(element(r2, h), kSmallest);
    double sum1 = 0, sum2 = 0;
    for (int64_t n = 0; n < bias.count; ++n) {
      const double distance = static_cast<double>(std::abs(bias.first + n));
      sum1 -= dbias[h * bias.count + n] * std::log1p(factor * distance);
      sum2 -= dbias[h * bias.count + n] * size * distance / (1 + factor * distance);
    }
    if (element(r1, h) >= kSmallest) set_element(dr1, element(dr1, h) + sum1, h);
    if (element(r2, h) >= kSmallest) set_element(dr2, element(dr2, h) + sum2, h);
  }
}

}  // namespace locant::inline v0
