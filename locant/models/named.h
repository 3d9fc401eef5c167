// Words of config.json that stand for something of ours.
#pragma once

#include <string>
#include <string_view>

#include "locant/io/config.h"
#include "locant/io/file.h"

namespace locant::inline v0 {

// The second of the pair whose first is `name`, the value of `key`; if there is none, an error that
// lists the known ones.
template <class Pairs>
const auto& named(const Config& config, std::string_view key, const std::string& name,
                  const Pairs& pairs) {
  std::string known;
  for (const auto& [word, meaning] : pairs) {
    if (name == word) return meaning;
    known.append(known.empty() ? "" : ", ").append(word);
  }
  config.reject(key, "is " + shown(name) + ", but known are " + known);
}

}  // namespace locant::inline v0
