#include "options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

namespace locant::python {
namespace {

// (N, 8) int64: batch, q_begin, q_len, k_begin, k_len, q_start, k_start, prefix.
std::vector<Sequence> to_sequences(nb::handle object) {
  const InputArray given = input_array(object, "sequences", {2, "(N, 8)"});
  if (object.is_none()) return {};
  require(given.view.dtype == DType::i64 && given.view.shape[1] == 8, "attention",
          "sequences must be int64 of shape (N, 8), got ", name_of(given.view.dtype), " ",
          shape_text(given.view));
  std::vector<Sequence> out;
  for (int64_t n = 0; n < given.view.shape[0]; ++n) {
    const auto at = [&](int64_t column) { return *given.view.at<int64_t>(n, column); };
    out.push_back({.batch = at(0),
                   .q_begin = at(1),
                   .q_len = at(2),
                   .k_begin = at(3),
                   .k_len = at(4),
                   .q_start = at(5),
                   .k_start = at(6),
                   .prefix = at(7)});
  }
  return out;
}

}  // namespace

Options::Options(nb::handle lengths, nb::handle k_lengths, bool left_padded, nb::handle sequences,
                 bool causal, std::pair<int64_t, int64_t> window, int64_t prefix, nb::handle mask,
                 int64_t q_start, int64_t k_start, nb::handle q_positions, nb::handle k_positions,
                 nb::handle q_segments, nb::handle k_segments, std::optional<double> scale,
                 double dropout, uint64_t dropout_seed, std::pair<int64_t, int64_t> tiling)
    : lengths_(integers(lengths, "lengths")),
      k_lengths_(integers(k_lengths, "k_lengths")),
      sequences_(to_sequences(sequences)),
      mask_(broadcast_array(mask, "mask", 4)),
      q_positions_(position_array(q_positions, "q_positions")),
      k_positions_(position_array(k_positions, "k_positions")),
      q_segments_(broadcast_array(q_segments, "q_segments", 2)),
      k_segments_(broadcast_array(k_segments, "k_segments", 2)) {
  options_.lengths = lengths_;
  options_.k_lengths = k_lengths_;
  options_.left_padded = left_padded;
  options_.sequences = sequences_;
  options_.causal = causal;
  options_.window_left = window.first;
  options_.window_right = window.second;
  options_.prefix = prefix;
  options_.mask = mask_.view;
  options_.q_start = q_start;
  options_.k_start = k_start;
  options_.q_positions = q_positions_.view;
  options_.k_positions = k_positions_.view;
  options_.q_segments = q_segments_.view;
  options_.k_segments = k_segments_.view;
  options_.scale = scale;
  options_.dropout = {.p = dropout, .seed = dropout_seed};
  options_.tiling = {.rows = tiling.first, .keys = tiling.second};
}

void bind_options(nb::module_& module) {
  using Pair = std::pair<int64_t, int64_t>;
  nb::class_<Options>(module, "Options", "Who sees whom, and where positions start: for one call.")
      .def(nb::init<nb::handle, nb::handle, bool, nb::handle, bool, Pair, int64_t, nb::handle,
                    int64_t, int64_t, nb::handle, nb::handle, nb::handle, nb::handle,
                    std::optional<double>, double, uint64_t, Pair>(),
           nb::kw_only(), nb::arg("lengths").none(), nb::arg("k_lengths").none(),
           nb::arg("left_padded"), nb::arg("sequences").none(), nb::arg("causal"),
           nb::arg("window"), nb::arg("prefix"), nb::arg("mask").none(), nb::arg("q_start"),
           nb::arg("k_start"), nb::arg("q_positions").none(), nb::arg("k_positions").none(),
           nb::arg("q_segments").none(), nb::arg("k_segments").none(), nb::arg("scale").none(),
           nb::arg("dropout"), nb::arg("dropout_seed"), nb::arg("tiling"));
}

}  // namespace locant::python
