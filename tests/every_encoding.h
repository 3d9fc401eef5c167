// Names of all encodings, for tests with a case for each.
#pragma once

#include <string>
#include <vector>

#include "locant/encodings/registry.h"

namespace locant {

inline std::vector<std::string> every_encoding() {
  std::vector<std::string> out;
  for (const EncodingEntry& entry : encodings()) out.push_back(entry.name);
  return out;
}

}  // namespace locant
