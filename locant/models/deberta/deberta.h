// DeBERTa v1 (model_type "deberta"), v2 and v3 ("deberta-v2"): disentangled attention.
//   S[i,j] = s·( <q_i, k_j> + <q_i, PK[slot]> + <k_j, PQ[slot]> )
// PK and PQ are the relative table after its projections: they depend on weights alone and are made
// when the model is loaded.
#pragma once

#include "locant/io/config.h"
#include "locant/models/encoder_model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Fails by the file and the key if config.json is no such model's.
EncoderParts build_deberta(const Config& config, const LoadOptions& options, const Source& source);

}  // namespace locant::inline v0
