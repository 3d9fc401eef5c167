#include "locant/check/pairwise.h"

#include <algorithm>
#include <numeric>

#include "locant/check/random.h"
#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

constexpr int kCandidates = 40;  // rows tried for each row taken
constexpr int kOpen = -1;        // a factor whose level is not chosen yet

class Design {
 public:
  Design(const std::vector<int>& levels, const Compatible& compatible, uint64_t seed)
      : levels_(levels), compatible_(compatible), random_(seed), first_(levels.size() + 1, 0) {
    std::partial_sum(levels.begin(), levels.end(), first_.begin() + 1);
    uncovered_.assign(first_.back() * first_.back(), 0);
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        for (int a = 0; a < levels_[f]; ++a)
          for (int b = 0; b < levels_[g]; ++b)
            if (compatible_({f, a}, {g, b})) uncovered_[at({f, a}, {g, b})] = 1;
  }

  std::vector<std::vector<int>> rows() {
    std::vector<std::vector<int>> out;
    while (std::count(uncovered_.begin(), uncovered_.end(), 1) > 0) {
      std::vector<int> best;
      int best_gain = 0;
      for (int n = 0; n < kCandidates; ++n) {
        const std::vector<int> row = candidate();
        if (row.empty()) continue;
        if (const int gained = gain(row); gained > best_gain) {
          best = row;
          best_gain = gained;
        }
      }
      require(!best.empty(), "pairwise", "a pair of levels fits no row: constraints contradict");
      cover(best);
      out.push_back(best);
    }
    return out;
  }

 private:
  int factors() const { return static_cast<int>(levels_.size()); }

  size_t at(FactorLevel x, FactorLevel y) const {
    if (x.factor > y.factor) std::swap(x, y);
    return (first_[x.factor] + x.level) * static_cast<size_t>(first_.back()) + first_[y.factor] +
           y.level;
  }

  // A row that starts from a random uncovered pair and takes, factor by factor, the level that
  // covers most with those already chosen. Empty if a factor has no level left.
  std::vector<int> candidate() {
    std::vector<int> row(levels_.size(), kOpen);
    place_uncovered_pair(row);
    std::vector<int> order(levels_.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random_.below(n)]);
    for (const int factor : order) {
      if (row[factor] != kOpen) continue;
      int best_gain = -1;
      const int shift = static_cast<int>(random_.below(levels_[factor]));  // breaks ties
      for (int n = 0; n < levels_[factor]; ++n) {
        const FactorLevel x{factor, (n + shift) % levels_[factor]};
        const int gained = gain_with(row, x);
        if (gained > best_gain) {
          best_gain = gained;
          row[factor] = x.level;
        }
      }
      if (row[factor] == kOpen) return {};
    }
    return row;
  }

  void place_uncovered_pair(std::vector<int>& row) {
    int64_t skip = random_.below(std::count(uncovered_.begin(), uncovered_.end(), 1));
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g)
        for (int a = 0; a < levels_[f]; ++a)
          for (int b = 0; b < levels_[g]; ++b)
            if (uncovered_[at({f, a}, {g, b})] && skip-- == 0) {
              row[f] = a;
              row[g] = b;
              return;
            }
  }

  // Uncovered pairs between x and the chosen levels of `row`; -1 if one of them forbids x.
  int gain_with(const std::vector<int>& row, const FactorLevel& x) const {
    int gained = 0;
    for (int f = 0; f < factors(); ++f) {
      if (row[f] == kOpen || f == x.factor) continue;
      const FactorLevel y{f, row[f]};
      if (!(f < x.factor ? compatible_(y, x) : compatible_(x, y))) return -1;
      gained += uncovered_[at(x, y)];
    }
    return gained;
  }

  int gain(const std::vector<int>& row) const {
    int twice = 0;
    for (int f = 0; f < factors(); ++f) twice += gain_with(row, {f, row[f]});
    return twice / 2;
  }

  void cover(const std::vector<int>& row) {
    for (int f = 0; f < factors(); ++f)
      for (int g = f + 1; g < factors(); ++g) uncovered_[at({f, row[f]}, {g, row[g]})] = 0;
  }

  const std::vector<int>& levels_;
  const Compatible& compatible_;
  Random random_;
  std::vector<int> first_;          // number of factor f's first level when all are counted through
  std::vector<uint8_t> uncovered_;  // by two such numbers, the smaller first
};

}  // namespace

std::vector<std::vector<int>> pairwise(const std::vector<int>& levels, const Compatible& compatible,
                                       uint64_t seed) {
  return Design(levels, compatible, seed).rows();
}

}  // namespace locant::inline v0
