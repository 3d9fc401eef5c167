// Activation functions of feed-forward layers and heads.
#pragma once

#include <cstdint>

namespace locant::inline v0 {

enum class Activation : uint8_t {
  none,
  gelu,       // x·Φ(x), Φ by erf
  gelu_tanh,  // x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2
  relu,       // max(x, 0)
  tanh,
  silu,     // x·sigmoid(x)
  sigmoid,  // 1/(1 + exp(-x))
};

}  // namespace locant::inline v0
