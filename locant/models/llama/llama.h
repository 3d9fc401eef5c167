// Llama and models of its shape: Mistral, Qwen2, Qwen3, Phi-3, and "locant", which has any position
// encoding (position.h). Causal, RMSNorm first, RoPE, grouped heads, gated feed-forward:
//   a = x + output(attend(RoPE(q, k), v)),  (q, k, v) = qkv(RMSNorm(x))
//   y = a + down(silu(gate(h))·up(h)),      h = RMSNorm(a)
#pragma once

#include <memory>

#include "locant/io/config.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Fails by the file and the key if config.json is no such model's.
std::shared_ptr<const Model> build_llama(const Config& config, const LoadOptions& options,
                                         const Source& source);

}  // namespace locant::inline v0
