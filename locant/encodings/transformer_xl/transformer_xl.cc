#include "locant/encodings/transformer_xl/transformer_xl.h"

#include <algorithm>

#include "locant/encodings/checks.h"
#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

std::vector<Parameter> parameters_of(const TransformerXLConfig& config) {
  const int64_t H = config.heads, d = config.head_dim;
  const int64_t width = checked_model_width(TransformerXL::kName, config);
  return {added_vector("r_w_bias", H, d, "u, added to queries that meet keys"),
          added_vector("r_r_bias", H, d, "v, added to queries that meet positions"),
          {.name = "r_net",
           .shape = {H * d, width},
           .shape_in_words = "heads·head_dim, d_model",
           .fan_in = width,
           .doc = "W_R, projects sinusoids like keys"}};
}

}  // namespace

const Fields<TransformerXLConfig>& TransformerXL::description() {
  static const Fields<TransformerXLConfig> fields{
      kName,
      {
          field("heads", &TransformerXLConfig::heads, "query heads"),
          field("head_dim", &TransformerXLConfig::head_dim, "width d of a head"),
          field("d_model", &TransformerXLConfig::d_model,
                "width of the sinusoids; 0: heads·head_dim"),
          field("clamp_len", &TransformerXLConfig::clamp_len,
                "distances beyond it count as it; <= 0: off"),
      }};
  return fields;
}

TransformerXL::TransformerXL(const TransformerXLConfig& config)
    : Encoding(kName, parameters_of(config)),
      config_(config),
      sinusoid_(kName, config.heads, config.head_dim, checked_model_width(kName, config),
                {-farthest_distance(config.clamp_len), farthest_distance(/*clamp_len=*/0)}) {}

int64_t TransformerXL::same_length_window(int64_t q_len, int64_t memory, int64_t mem_len) {
  require(q_len >= 1 && memory >= 0, kName, "same_length needs q_len >= 1 and memory >= 0, got ",
          q_len, " and ", memory);
  // A limit of no keys would be a query that sees nothing, not even itself.
  require(mem_len >= 1, kName, "same_length needs mem_len >= 1, got ", mem_len);
  return std::min(mem_len, memory + q_len) - 1;
}

void TransformerXL::project(int64_t first_offset, int64_t last_offset) {
  Encoding::project(first_offset, last_offset);
  sinusoid_.keep(parameter("r_net"), {first_offset, last_offset});
}

void TransformerXL::parameter_changed(const std::string& name) {
  if (name == "r_net") sinusoid_.drop();
}

Prepared TransformerXL::prepare(const Problem& problem, const ConstView& q,
                                const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k);
  Terms& terms = prepared.terms;
  terms.query_plus = parameter("r_w_bias");
  sinusoid_.add_term(problem, parameter("r_net"), parameter("r_r_bias"), prepared);
  return prepared;
}

void TransformerXL::pullback(const Problem&, const Prepared& prepared, const View&, const View&,
                             const TermGradients& dterms, ParameterGradients& gradients) const {
  add_to(gradients.at("r_w_bias").view(), dterms.query_plus.view());
  sinusoid_.pullback(prepared.terms.projections[0], dterms.projections[0],
                     gradients.at("r_net").view(), gradients.at("r_r_bias").view());
}

}  // namespace locant::inline v0
