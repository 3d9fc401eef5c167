// T5 (model_type "t5"), mT5 ("mt5") and UMT5 ("umt5"): a relative bias per head and bucket, added
// to scores that are not scaled; pre-norm layers without biases. An encoder alone, or with a
// decoder.
#pragma once

#include <memory>

#include "locant/io/config.h"
#include "locant/models/model.h"
#include "locant/models/source.h"

namespace locant::inline v0 {

// Fails by the file and the key if config.json is no such model's.
std::shared_ptr<const Model> build_t5(const Config& config, const LoadOptions& options,
                                      const Source& source);

}  // namespace locant::inline v0
