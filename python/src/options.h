// The keyword arguments of attention, kept alive for one call.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "locant/layers/attend.h"

namespace locant::python {

class Options {
 public:
  Options(nb::handle lengths, nb::handle k_lengths, bool left_padded, nb::handle sequences,
          bool causal, std::pair<int64_t, int64_t> window, int64_t prefix, nb::handle mask,
          int64_t q_start, int64_t k_start, nb::handle q_positions, nb::handle k_positions,
          nb::handle q_segments, nb::handle k_segments, std::optional<double> scale, double dropout,
          uint64_t dropout_seed, std::pair<int64_t, int64_t> tiling);

  // The views and spans point into this object.
  const AttendOptions& get() const { return options_; }

  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

 private:
  std::vector<int64_t> lengths_, k_lengths_;
  std::vector<Sequence> sequences_;
  InputArray mask_, q_positions_, k_positions_, q_segments_, k_segments_;
  AttendOptions options_;
};

void bind_options(nb::module_& module);

}  // namespace locant::python
