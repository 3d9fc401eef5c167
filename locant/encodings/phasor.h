// Phasors e^{(a_t + iθ_t)·p} of many positions p and pairs t: what rotations and sinusoids are made
// of.
//
// A position splits as p = 64·high + low, and e^{(a+iθ)p} = e^{(a+iθ)64·high}·e^{(a+iθ)low}. The
// low factors are tabled at construction; the high ones change once in 64 consecutive positions. So
// a run of positions costs one complex product per pair, not a sine and a cosine, and any other
// order of positions gives the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/api.h"

namespace locant::inline v0 {

class LOCANT_API Phasors {
 public:
  // θ_t, and a_t if there is growth; all phasors are multiplied by `magnitude`.
  explicit Phasors(std::vector<double> frequencies, std::vector<double> growth = {},
                   double magnitude = 1);

  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  // Goes from position to position and keeps the high factors of the last one. One per thread.
  class Walk {
   public:
    // Growth counts from `origin`: e^{a·(p - origin)}. The phasors must outlive the walk.
    explicit Walk(const Phasors& phasors, int64_t origin = 0);

    // cosine[t] = magnitude·e^{a_t·(p - origin)}·cos(θ_t·p), and sine[t] likewise, t < pairs().
    // Right to double precision while |p·θ_t| < 2^41, for any θ_t: the product p·θ_t is not
    // rounded.
    template <class Real>
    void row(int64_t position, Real* cosine, Real* sine);

   private:
    void turn_to(int64_t high);

    const Phasors& phasors_;
    int64_t origin_;
    bool started_ = false;
    int64_t high_ = 0;
    std::vector<double> cosine_, sine_;  // (pairs) of position 64·high
  };

 private:
  static constexpr int64_t kRun = 64;

  std::vector<double> frequencies_, growth_;
  std::vector<double> cosine_, sine_;  // (kRun, pairs) of positions 0 to 63
};

}  // namespace locant::inline v0
