// The angles of RoPE per position, for each scaling, and which axis of a position each pair
// follows.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/rope/rope.h"

namespace locant::inline v0 {

// rot: the columns that turn.
int64_t rotary_dim(const RopeConfig& config);

// θ' (rot/2) and the magnitude for a sequence of `length` positions.
RopeFrequencies rope_frequencies(const RopeConfig& config, int64_t length);

// How many numbers a position may have.
int64_t rope_axis_count(const RopeConfig& config);

// (rot/2): the axis of each pair.
std::vector<int64_t> rope_axis_of_pair(const RopeConfig& config);

// xpos: a_t, (rot/2), so that queries grow by e^{a_t·p} and keys by e^{-a_t·p}. Empty otherwise.
std::vector<double> rope_growth(const RopeConfig& config);

}  // namespace locant::inline v0
