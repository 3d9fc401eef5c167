#include "locant/layers/embedding.h"

#include <algorithm>

namespace locant::inline v0 {

void gather_rows(const ConstView& table, std::span<const int64_t> ids, bool add, const View& out) {
  require(table.rank == 2 && out.rank == 2 && out.shape[1] == table.shape[1] &&
              out.shape[0] == static_cast<int64_t>(ids.size()),
          "embedding", "shapes must be (rows, D) and (", ids.size(), ", D), got ",
          shape_text(table), " and ", shape_text(out));
  const int64_t width = out.shape[1];
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    require(ids[i] >= 0 && ids[i] < table.shape[0], "embedding", "id ", ids[i],
            " is not a row of a table of ", table.shape[0]);
    const float* from = table.at<float>(ids[i]);
    float* to = out.at<float>(i);
    if (add) {
      for (int64_t c = 0; c < width; ++c) to[c] += from[c];
    } else {
      std::copy_n(from, width, to);
    }
  }
}

}  // namespace locant::inline v0
