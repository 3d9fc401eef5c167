// The two 16-bit floating types as plain data: stored, converted, never computed with.
#pragma once

#include <bit>
#include <cstdint>

#include "locant/core/api.h"

namespace locant::inline v0 {

// bfloat16: the upper half of a float32.
struct LOCANT_API Bfloat {
  uint16_t bits = 0;

  Bfloat() = default;
  explicit Bfloat(float value);  // to nearest, ties to even

  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// IEEE binary16: 1 sign, 5 exponent and 10 fraction bits.
struct LOCANT_API Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float value);  // to nearest, ties to even; from 65520 on infinite

  operator float() const;
};

}  // namespace locant::inline v0
