// Rotating the rows of many sequences, in parallel.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/view.h"
#include "locant/encodings/phasor.h"
#include "locant/encodings/rope/rope.h"

namespace locant::inline v0 {

// The phasors of a head's pairs, each of which follows one axis of the position.
class RopePhasors {
 public:
  RopePhasors(const RopeFrequencies& frequencies, const std::vector<double>& growth,
              const std::vector<int64_t>& axis_of_pair);

  int64_t pairs() const { return pairs_; }

  class Walk {
   public:
    Walk(const RopePhasors& phasors, int64_t origin);

    // position[axis·stride] -> cosine, sine (pairs)
    template <class Real>
    void row(const int64_t* position, int64_t stride, Real* cosine, Real* sine);

   private:
    const RopePhasors& phasors_;
    std::vector<Phasors::Walk> walks_;  // (axes)
    std::vector<double> cosine_, sine_;
  };

 private:
  struct Axis {
    Phasors phasors;
    std::vector<int64_t> pairs;  // which they are
  };
  std::vector<Axis> axes_;
  int64_t pairs_;
};

// Rows [begin, begin + length) of a batch entry.
struct RopeRows {
  int64_t batch = 0, begin = 0, length = 0;
  int64_t start = 0;  // position of the first, unless there are ids
  int64_t origin = 0;
  const RopePhasors* phasors = nullptr;
};

struct RopeRotation {
  ConstView from;       // (B, H, L, d)
  View to;              // (B, H, L, d); may be `from`; the same type, or any if `from` is 16-bit
  ConstView positions;  // (B | 1, L) or (B | 1, L, axes), int64, or empty
  bool interleaved = false;
  bool inverse = false;
};

// Each row must be in `rows` at most once. Results do not depend on how work is split.
void rotate_rows(const RopeRotation& rotation, const std::vector<RopeRows>& rows);

}  // namespace locant::inline v0
