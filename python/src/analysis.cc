#include "analysis.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "embed.h"
#include "encoding.h"
#include "locant/layers/analysis.h"
#include "options.h"

namespace locant::python {
namespace {

constexpr Axes kTokens{3, "(B, L, D)"};
constexpr Axes kWeights{2, "(heads·head_dim, dim)"};
constexpr Axes kTensor{4, "(B, H, L, d)"};

// The four parts in the order of AbsoluteScores, each (B, H, Lq, Lk).
nb::tuple run_absolute_scores(const BoundEncoding& encoding, nb::handle x_q_in, nb::handle x_k_in,
                              nb::handle w_q_in, nb::handle w_k_in, const EmbedArguments& query,
                              const EmbedArguments& key, std::optional<double> scale) {
  const InputArray x_q = input_array(x_q_in, "x_q", kTokens);
  const InputArray x_k = input_array(x_k_in, "x_k", kTokens);
  const InputArray w_q = input_array(w_q_in, "w_q", kWeights);
  const InputArray w_k = input_array(w_k_in, "w_k", kWeights);
  AbsoluteScores parts;
  {
    const nb::gil_scoped_release release;
    parts = absolute_scores(x_q.view, x_k.view, encoding.encoding(), w_q.view, w_k.view,
                            {.query = query.options, .key = key.options, .scale = scale});
  }
  const int64_t head_dim = std::get<int64_t>(encoding.encoding().fields().at("head_dim"));
  const int64_t shape[] = {x_q.view.shape[0], w_q.view.shape[0] / head_dim, x_q.view.shape[1],
                           x_k.view.shape[1]};
  return nb::make_tuple(numpy_array(std::move(parts.content_content), shape),
                        numpy_array(std::move(parts.content_position), shape),
                        numpy_array(std::move(parts.position_content), shape),
                        numpy_array(std::move(parts.position_position), shape));
}

// (shift, worst change, largest score) of every shift.
nb::list run_shift_invariance(nb::handle q_in, nb::handle k_in, const BoundEncoding& encoding,
                              const Options& options, const std::vector<int64_t>& shifts) {
  const InputArray q = input_array(q_in, "q", kTensor);
  const InputArray k = input_array(k_in, "k", kTensor);
  std::vector<ShiftChange> changes;
  {
    const nb::gil_scoped_release release;
    changes = shift_invariance(q.view, k.view, encoding.encoding(), options.get(), shifts);
  }
  nb::list out;
  for (const ShiftChange& change : changes)
    out.append(nb::make_tuple(change.shift, change.worst_change, change.largest_score));
  return out;
}

}  // namespace

void bind_analysis(nb::module_& module) {
  module.def("absolute_scores", &run_absolute_scores, nb::arg("encoding"), nb::arg("x_q"),
             nb::arg("x_k"), nb::arg("w_q"), nb::arg("w_k"), nb::arg("query"), nb::arg("key"),
             nb::arg("scale").none(),
             "Four float64 arrays (B, H, Lq, Lk): content and position of query and key.");
  module.def("shift_invariance", &run_shift_invariance, nb::arg("q"), nb::arg("k"),
             nb::arg("encoding"), nb::arg("options"), nb::arg("shifts"),
             "For each shift: the shift, the worst change of a score, the largest score.");
}

}  // namespace locant::python
