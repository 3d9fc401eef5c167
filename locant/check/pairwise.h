// All-pairs test design: few rows in which every two levels of every two factors meet at least
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace locant::inline v0 {

struct FactorLevel {
  int factor = 0, level = 0;
};

// False for two levels that cannot stand in one row; their pair is then not asked for.
using Compatible = std::function<bool(const FactorLevel&, const FactorLevel&)>;

// levels[f] = how many levels factor f has. Each row names one level per factor. Greedy, and the
// same rows for the same arguments on every machine.
std::vector<std::vector<int>> pairwise(const std::vector<int>& levels, const Compatible& compatible,
                                       uint64_t seed);

}  // namespace locant::inline v0
