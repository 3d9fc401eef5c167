// config.json of a DeBERTa, with Hugging Face's defaults for what it leaves out.
#pragma once

#include <cstdint>

#include "locant/io/config.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

struct DebertaModelConfig {
  ModelInfo info;
  bool v1 = false;
  int64_t embedding_size = 0;  // E
  int64_t positions = 0;       // max_position_embeddings
  double eps = 1e-7;
  bool position_biased_input = true;  // absolute positions are added to the input
  bool relative = false;              // relative_attention
  bool c2p = false, p2c = false;
  int64_t scale_factor = 1;      // f in s = 1/sqrt(d·f), whether or not relative
  int64_t position_buckets = 0;  // 0: exact distances
  int64_t max_relative = 0;      // M
  bool share_key = false;        // share_att_key: query_proj and key_proj project the table too
  bool norm_table = false;       // norm_rel_ebd has layer_norm
  bool talking_heads = false;    // v1
  int64_t conv_kernel = 0, conv_groups = 1;  // v2

  int64_t head_dim() const { return info.hidden_size / info.heads; }
  int64_t span() const { return position_buckets > 0 ? position_buckets : max_relative; }
};

DebertaModelConfig read_deberta_config(const Config& config);

}  // namespace locant::inline v0
