// What BERT, RoBERTa and MPNet have in common: layers that differ in names, and heads.
#pragma once

#include <array>
#include <memory>

#include "locant/io/config.h"
#include "locant/layers/encoder_layer.h"
#include "locant/models/head.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Where a layer has its attention's tensors.
struct BertLayerNames {
  std::array<const char*, 3> qkv;
  const char *output, *output_norm;
};

double bert_eps(const Config& config);

EncoderLayer build_bert_layer(const Config& config, const ModelInfo& info,
                              const BertLayerNames& names, const Source& source,
                              const std::shared_ptr<const Encoding>& encoding);

// Fills the head of head.kind; its labels go into `info`. RoBERTa's heads differ from BERT's.
void build_bert_head(const Config& config, ModelInfo& info, bool roberta, const Source& source,
                     const ConstView& words, Head& head);

}  // namespace locant::inline v0
