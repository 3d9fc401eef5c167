#include "locant/encodings/xlnet/xlnet.h"

#include "locant/encodings/checks.h"
#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

const XLNetConfig& checked(const XLNetConfig& config) {
  checked_model_width(XLNet::kName, config);
  require(config.attn_type != "bi_data", XLNet::kName,
          "attn_type bi_data (half of the batch read backwards) is not supported; known: bi, uni");
  require(config.attn_type == "bi" || config.attn_type == "uni", XLNet::kName,
          "attn_type must be one of bi, uni, got '", config.attn_type, "'");
  return config;
}

std::vector<Parameter> parameters_of(const XLNetConfig& config) {
  const int64_t H = config.heads, d = config.head_dim;
  const int64_t width = checked_model_width(XLNet::kName, config);
  return {added_vector("r_w_bias", H, d, "u, added to queries that meet keys"),
          added_vector("r_r_bias", H, d, "v, added to queries that meet positions"),
          added_vector("r_s_bias", H, d, "s, added to queries that meet segments"),
          {.name = "seg_embed",
           .shape = {2, H, d},
           .shape_in_words = "2, heads, head_dim",
           .doc = "for keys of the same segment, and of another"},
          {.name = "r",
           .shape = {width, H, d},
           .shape_in_words = "d_model, heads, head_dim",
           .fan_in = width,
           .doc = "W_R, projects sinusoids like keys"}};
}

// Offsets beyond which r no longer changes.
Problem::Offsets reach_of(const XLNetConfig& config) {
  const int64_t farthest = farthest_distance(config.clamp_len);
  return {-farthest, config.attn_type == "uni" ? 0 : farthest};
}

// r (d_model, heads, d), or its gradient, as W_R (heads·d, d_model).
template <class AnyView>
AnyView as_weight(const AnyView& r) {
  // Heads and their columns are one axis only if they lie evenly in memory.
  require(r.shape[1] == 1 || r.strides[1] == r.shape[2] * r.strides[2], XLNet::kName,
          "r must have its heads side by side: stride ", r.shape[2] * r.strides[2],
          " between heads, got ", r.strides[1]);
  const int64_t shape[] = {r.shape[1] * r.shape[2], r.shape[0]};
  const int64_t strides[] = {r.strides[2], r.strides[0]};
  return AnyView(r.data, r.dtype, shape, strides);
}

// seg_embed (2, heads, d), or its gradient, as (heads, 2, d).
template <class AnyView>
AnyView as_segment_table(const AnyView& table) {
  const int64_t shape[] = {table.shape[1], 2, table.shape[2]};
  const int64_t strides[] = {table.strides[1], table.strides[0], table.strides[2]};
  return AnyView(table.data, table.dtype, shape, strides);
}

}  // namespace

const Fields<XLNetConfig>& XLNet::description() {
  static const Fields<XLNetConfig> fields{
      kName,
      {
          field("heads", &XLNetConfig::heads, "query heads"),
          field("head_dim", &XLNetConfig::head_dim, "width d of a head"),
          field("d_model", &XLNetConfig::d_model, "width of the sinusoids; 0: heads·head_dim"),
          field("clamp_len", &XLNetConfig::clamp_len,
                "distances beyond it count as it, both ways; <= 0: off"),
          field("attn_type", &XLNetConfig::attn_type,
                "uni: for calls that are causal; keys ahead count as distance 0", {"bi", "uni"}),
      }};
  return fields;
}

XLNet::XLNet(const XLNetConfig& config)
    : Encoding(kName, parameters_of(checked(config))),
      config_(config),
      sinusoid_(kName, config.heads, config.head_dim, checked_model_width(kName, config),
                reach_of(config)) {}

int64_t XLNet::same_length_window(int64_t memory) {
  require(memory >= 0, kName, "same_length needs memory >= 0, got ", memory);
  return memory;
}

void XLNet::project(int64_t first_offset, int64_t last_offset) {
  Encoding::project(first_offset, last_offset);
  sinusoid_.keep(as_weight(parameter("r")), {first_offset, last_offset});
}

void XLNet::parameter_changed(const std::string& name) {
  if (name == "r") sinusoid_.drop();
}

Prepared XLNet::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k);
  Terms& terms = prepared.terms;
  terms.query_plus = parameter("r_w_bias");
  sinusoid_.add_term(problem, as_weight(parameter("r")), parameter("r_r_bias"), prepared);
  if (problem.q_segments)
    terms.segments.push_back({.name = "segment",
                              .scale = terms.scale,
                              .plus = parameter("r_s_bias"),
                              .table = as_segment_table(parameter("seg_embed"))});
  return prepared;
}

void XLNet::pullback(const Problem&, const Prepared& prepared, const View&, const View&,
                     const TermGradients& dterms, ParameterGradients& gradients) const {
  add_to(gradients.at("r_w_bias").view(), dterms.query_plus.view());
  sinusoid_.pullback(prepared.terms.projections[0], dterms.projections[0],
                     as_weight(gradients.at("r").view()), gradients.at("r_r_bias").view());
  if (dterms.segments.empty()) return;  // the call had no segments
  add_to(gradients.at("r_s_bias").view(), dterms.segments[0].plus.view());
  add_to(as_segment_table(gradients.at("seg_embed").view()), dterms.segments[0].table.view());
}

}  // namespace locant::inline v0
