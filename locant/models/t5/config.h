// config.json of a T5, mT5 or UMT5, with Hugging Face's defaults for what it leaves out.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/io/config.h"
#include "locant/kernels/activation.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

struct T5ModelConfig {
  ModelInfo info;            // decoder_layers is 0 if only the encoder is wanted
  int64_t head_dim = 64;     // d_kv; H·d need not be D
  int64_t num_buckets = 32;  // relative_attention_num_buckets
  int64_t max_distance = 128;
  double eps = 1e-6;
  bool gated = false;  // activation(wi_0·x)·(wi_1·x) instead of activation(wi·x)
  Activation activation = Activation::relu;
  bool table_per_layer = false;  // UMT5; else layer 0's serves all
  bool scale_output = true;      // hidden states are multiplied by D^-0.5 before the lm_head
  int64_t start_token = 0;       // the decoder's first
  std::vector<int64_t> stop;     // eos_token_id
};

T5ModelConfig read_t5_config(const Config& config, const LoadOptions& options);

}  // namespace locant::inline v0
