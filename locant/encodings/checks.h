// What the constructor and prepare() of every encoding begin with. Config has `heads` and
// `head_dim`.
#pragma once

#include <cmath>
#include <string_view>

#include "locant/core/error.h"
#include "locant/encodings/encoding.h"
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

// The caller's q and k, and c: that of the call, or else the encoding's.
inline Prepared unchanged(const Problem& problem, const ConstView& q, const ConstView& k,
                          double scale) {
  Prepared prepared{.q = q, .k = k, .terms = {}, .storage = {}};
  prepared.terms.scale = problem.scale.value_or(scale);
  return prepared;
}

// The same with c = 1/sqrt(d).
inline Prepared unchanged(const Problem& problem, const ConstView& q, const ConstView& k) {
  return unchanged(problem, q, k, 1 / std::sqrt(static_cast<double>(problem.head_dim)));
}

}  // namespace locant::inline v0
