#include "locant/encodings/none/none.h"

#include <cmath>

#include "locant/encodings/checks.h"

namespace locant::inline v0 {

const Fields<NoneConfig>& None::description() {
  static const Fields<NoneConfig> fields{kName,
                                         {
                                             field("heads", &NoneConfig::heads, "query heads"),
                                             field("head_dim", &NoneConfig::head_dim, "width d"),
                                         }};
  return fields;
}

None::None(const NoneConfig& config) : Encoding(kName, {}), config_(config) {
  check_heads(kName, config);
}

Prepared None::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  return unchanged(problem, q, k);
}

}  // namespace locant::inline v0
