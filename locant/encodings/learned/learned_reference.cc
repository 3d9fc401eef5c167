// Devlin et al. 2019: the position embedding is a row of a table.
#include "locant/encodings/learned/learned.h"

namespace locant::inline v0 {

double Learned::reference_element(int64_t position, int64_t channel) const {
  if (position < 0 || position >= config_.max_len)
    fail("learned", "the table has rows 0 to ", config_.max_len - 1, ", got position ", position);
  return element(parameter("table"), position, channel);
}

}  // namespace locant::inline v0
