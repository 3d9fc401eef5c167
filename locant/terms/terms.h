// What an encoding compiles to. The attention kernels know these terms and no encoding's name.
//
//   S[i,j] = c·<q_i + u, k_j>  +  sum bias[h, d]  +  sum s·<x + w, T[row(d)]>
//   O[i]   = sum_j P[i,j]·(v_j + sum A[row(d)])                 d = pos(j) - pos(i)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// row(offset) = rows[offset - first], constant beyond both ends. Never decreasing: an encoding
// whose rows fall with the offset reverses its table instead (ConstView::reversed).
struct RowMap {
  int64_t first = 0;
  std::vector<int32_t> rows;

  int32_t row(int64_t offset) const {
    const int64_t last = static_cast<int64_t>(rows.size()) - 1;
    return rows[std::clamp<int64_t>(offset - first, 0, last)];
  }
};

// True if no step is larger than 1: then a run of n offsets touches at most n rows, and kernels
// expand rows of the query side with permutations instead of gathers.
LOCANT_API bool has_unit_steps(const RowMap& map);

// bias[h, offset] = values[h][offset - first], beyond the ends continued with a slope per head.
struct LOCANT_API OffsetBias {
  std::string name;
  int64_t first = 0;
  int64_t count = 0;                            // offsets in the table
  std::vector<double> values;                   // (heads, count)
  std::vector<double> left_slope, right_slope;  // (heads) change per step outwards; empty: constant

  double at(int64_t head, int64_t offset) const {
    const int64_t index = offset - first;
    const int64_t inside = std::clamp<int64_t>(index, 0, count - 1);
    double value = values[head * count + inside];
    if (index < 0 && !left_slope.empty()) value += left_slope[head] * static_cast<double>(-index);
    if (index >= count && !right_slope.empty())
      value += right_slope[head] * static_cast<double>(index - count + 1);
    return value;
  }

  // out[n] += at(head, offset + n), without a choice per number.
  void add_to(int64_t head, int64_t offset, int64_t size, double* out) const;
};

enum class Side : uint8_t { query, key };

// scale·<x + plus, table[row(offset)]>, x = the query's row of q or the key's row of k.
struct Projection {
  std::string name;
  Side side = Side::query;
  double scale = 1;
  ConstView plus;   // (heads, d) added to x, or empty; query side only
  ConstView table;  // (heads | 1, rows, d)
  RowMap map;
};

// O[i] += sum_j P[i,j]·table[row(offset)]
struct ValueTerm {
  std::string name;
  ConstView table;  // (heads | 1, rows, dv)
  RowMap map;
};

// scale·<q_i + plus, table[seg(i) != seg(j)]>; segment ids belong to the call (Problem).
struct SegmentTerm {
  std::string name;
  double scale = 1;
  ConstView plus;   // (heads, d) or empty
  ConstView table;  // (heads | 1, 2, d): for the same segment, for another
};

// All that is added to c·<q_i, k_j> and to the values.
struct Terms {
  double scale = 1;      // c
  ConstView query_plus;  // u, (heads, d), or empty
  std::vector<OffsetBias> biases;
  std::vector<Projection> projections;
  std::vector<ValueTerm> values;
  std::vector<SegmentTerm> segments;

  bool depend_on_positions() const {
    return !biases.empty() || !projections.empty() || !values.empty();
  }
};

// Fails by name if a table, map or bias does not fit `heads`, `head_dim` and `value_dim`.
LOCANT_API void validate(const Terms& terms, int64_t heads, int64_t head_dim, int64_t value_dim);

}  // namespace locant::inline v0
