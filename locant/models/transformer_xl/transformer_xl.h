// Transformer-XL checkpoints as transformers wrote them up to 4.35.
//
//   h_0 = adaptive embedding;   layers: RecurrentLayer with the transformer_xl encoding, causal
//   head: none, adaptive softmax, or a classifier of the last token
#pragma once

#include <memory>

#include "locant/io/config.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

std::shared_ptr<const Model> build_transformer_xl(const Config& config, const LoadOptions& options,
                                                  const Source& source);

}  // namespace locant::inline v0
