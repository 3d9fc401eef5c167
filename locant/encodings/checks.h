// Checks that every encoding's configuration needs. Config has `heads` and `head_dim`.
#pragma once

#include <string_view>

#include "locant/core/error.h"
#include "locant/terms/problem.h"

namespace locant::inline v0 {

// At construction.
template <class Config>
void check_heads(std::string_view scope, const Config& config) {
  require(config.heads >= 1, scope, "heads must be >= 1, got ", config.heads);
  require(config.head_dim >= 1, scope, "head_dim must be >= 1, got ", config.head_dim);
}

// At prepare.
template <class Config>
void check_fit(std::string_view scope, const Config& config, const Problem& problem) {
  require(config.heads == problem.heads, scope, "the encoding has ", config.heads,
          " heads but q has ", problem.heads);
  require(config.head_dim == problem.head_dim, scope, "the encoding has head_dim ", config.head_dim,
          " but q has ", problem.head_dim);
}

}  // namespace locant::inline v0
