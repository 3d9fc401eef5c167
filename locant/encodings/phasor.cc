#include "locant/encodings/phasor.h"

#include <cmath>
#include <utility>

namespace locant::inline v0 {
namespace {

struct Phasor {
  double cosine, sine;
};

// e^{iθp} with the angle p·θ as a sum of two doubles: a rounded product would be off by 1e-9 at
// p = 2^24, and by more than float32 shows at 2^31.
Phasor unit_phasor(double position, double frequency) {
  const double angle = position * frequency;
  const double rest = std::fma(position, frequency, -angle);
  const double c = std::cos(angle), s = std::sin(angle);
  const double rest_c = 1 - rest * rest / 2, rest_s = rest * (1 - rest * rest / 6);
  return {c * rest_c - s * rest_s, s * rest_c + c * rest_s};
}

}  // namespace

Phasors::Phasors(std::vector<double> frequencies, std::vector<double> growth, double magnitude)
    : frequencies_(std::move(frequencies)),
      growth_(std::move(growth)),
      cosine_(kRun * pairs()),
      sine_(kRun * pairs()) {
  for (int64_t low = 0; low < kRun; ++low)
    for (int64_t t = 0; t < pairs(); ++t) {
      const double p = static_cast<double>(low);
      const Phasor phasor = unit_phasor(p, frequencies_[t]);
      const double size = growth_.empty() ? magnitude : magnitude * std::exp(growth_[t] * p);
      cosine_[low * pairs() + t] = size * phasor.cosine;
      sine_[low * pairs() + t] = size * phasor.sine;
    }
}

Phasors::Walk::Walk(const Phasors& phasors, int64_t origin)
    : phasors_(phasors),
      origin_(origin),
      cosine_(phasors.frequencies_.size()),
      sine_(phasors.frequencies_.size()) {}

void Phasors::Walk::turn_to(int64_t high) {
  if (started_ && high == high_) return;
  started_ = true;
  high_ = high;
  for (int64_t t = 0; t < phasors_.pairs(); ++t) {
    const Phasor phasor = unit_phasor(static_cast<double>(high * kRun), phasors_.frequencies_[t]);
    const double size =
        phasors_.growth_.empty()
            ? 1
            : std::exp(phasors_.growth_[t] * static_cast<double>(high * kRun - origin_));
    cosine_[t] = size * phasor.cosine;
    sine_[t] = size * phasor.sine;
  }
}

template <class Real>
void Phasors::Walk::row(int64_t position, Real* cosine, Real* sine) {
  const int64_t low = position & (kRun - 1);  // >= 0 for negative positions too
  turn_to((position - low) / kRun);
  const int64_t pairs = phasors_.pairs();
  const double* low_cosine = phasors_.cosine_.data() + low * pairs;
  const double* low_sine = phasors_.sine_.data() + low * pairs;
  for (int64_t t = 0; t < pairs; ++t) {
    cosine[t] = static_cast<Real>(cosine_[t] * low_cosine[t] - sine_[t] * low_sine[t]);
    sine[t] = static_cast<Real>(sine_[t] * low_cosine[t] + cosine_[t] * low_sine[t]);
  }
}

template void Phasors::Walk::row<float>(int64_t, float*, float*);
template void Phasors::Walk::row<double>(int64_t, double*, double*);

}  // namespace locant::inline v0
