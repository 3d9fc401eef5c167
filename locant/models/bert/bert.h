// BERT and RoBERTa (XLM-RoBERTa, CamemBERT): learned absolute positions, plain attention.
#pragma once

#include "locant/io/config.h"
#include "locant/models/encoder_model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Fails by the file and the key if config.json is no such model's.
EncoderParts build_bert(const Config& config, const LoadOptions& options, const Source& source);

}  // namespace locant::inline v0
