// XLNet checkpoints.
//
//   h_0 = word;   layers: RecurrentLayer with the xlnet encoding, in both directions or causal
//   head: none, summary and classifier, classifier on tokens, answer spans, or language model
#pragma once

#include <memory>

#include "locant/io/config.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

std::shared_ptr<const Model> build_xlnet(const Config& config, const LoadOptions& options,
                                         const Source& source);

}  // namespace locant::inline v0
