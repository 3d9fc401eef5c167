// MPNet (model_type "mpnet"): learned absolute positions, and T5's bidirectional bias on scores
// that are scaled by 1/√d, one table for all layers. The rest is RoBERTa's.
#pragma once

#include "locant/io/config.h"
#include "locant/models/encoder_model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Fails by the file and the key if config.json is no such model's.
EncoderParts build_mpnet(const Config& config, const LoadOptions& options, const Source& source);

}  // namespace locant::inline v0
