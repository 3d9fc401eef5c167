#include "locant/core/half.h"

namespace locant::inline v0 {
namespace {

constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
constexpr uint32_t kOverflow = (127 + 16) << 23;  // 2^16: infinite in binary16, whatever rounds
constexpr uint32_t kNormal = (127 - 14) << 23;    // 2^-14: the smallest normal binary16
constexpr uint32_t kRebias = (127 - 15) << 23;    // between the two types' exponents

}  // namespace

Bfloat::Bfloat(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  // A NaN stays one, even if all its set bits are in the half that is cut off.
  bits = static_cast<uint16_t>((u & ~kSign) > kInfinity ? (u >> 16) | 0x40
                                                        : (u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

Half::Half(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value) & ~kSign;
  uint32_t magnitude;
  if (u >= kOverflow) {
    magnitude = u > kInfinity ? 0x7e00 : 0x7c00;
  } else if (u < kNormal) {
    // Next to 0.5 a float32 has the spacing of subnormal binary16 numbers: the sum rounds for us.
    magnitude = std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - (126u << 23);
  } else {
    magnitude = (u - kRebias + 0xfff + ((u >> 13) & 1)) >> 13;
  }
  bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(value) & kSign) >> 16 | magnitude);
}

Half::operator float() const {
  const uint32_t shifted = (bits & 0x7fffu) << 13;
  const uint32_t exponent = shifted & (0x7c00u << 13);
  uint32_t u = shifted + kRebias;
  if (exponent == (0x7c00u << 13)) {
    u = shifted | kInfinity;
  } else if (exponent == 0) {
    // fraction·2^-24, as the difference of two normal numbers.
    u = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted | kNormal) -
                                std::bit_cast<float>(kNormal));
  }
  return std::bit_cast<float>(u | static_cast<uint32_t>(bits & 0x8000u) << 16);
}

}  // namespace locant::inline v0
