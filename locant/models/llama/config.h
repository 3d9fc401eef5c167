// config.json of Llama and its relatives.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/rope/rope.h"
#include "locant/io/config.h"
#include "locant/kernels/activation.h"
#include "locant/models/llama/position.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

struct LlamaConfig {
  ModelInfo info;
  int64_t kv_heads = 1, head_dim = 64;
  double norm_eps = 1e-6;
  Activation activation = Activation::silu;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool fused = false;            // Phi-3: one tensor for q, k and v, and one for gate and up
  bool head_norms = false;       // Qwen3: RMSNorm over each head of q and k
  bool tied = false;             // the words are the language model's head
  std::vector<int64_t> windows;  // (layers) keys that a query sees, itself included; 0: all
  RopeConfig rope;
  PositionEncoding position;  // instead of it, if it has a name
};

// Fails by the file and the key.
LlamaConfig llama_config(const Config& config);

// The rotation that `rope_parameters` (transformers 5) or `rope_scaling` and `rope_theta` ask for.
RopeConfig rope_config(const Config& config, int64_t heads, int64_t head_dim);

}  // namespace locant::inline v0
