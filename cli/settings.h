// Fields of encodings on the command line: --set max_distance=16.
#pragma once

#include <string>
#include <vector>

#include "locant/encodings/registry.h"

namespace locant::cli {

// Adds the settings whose fields the encoding has to `fields`; the others are for others.
void apply_settings(const EncodingEntry& entry, const std::vector<std::string>& settings,
                    FieldValues& fields);

// Fails if a setting names a field that none of the encodings has.
void require_known_settings(const char* scope, const std::vector<const EncodingEntry*>& entries,
                            const std::vector<std::string>& settings);

}  // namespace locant::cli
