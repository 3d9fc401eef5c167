#include "locant/encodings/deberta/deberta.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "locant/encodings/checks.h"
#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

// Offsets that a row map may hold on each side.
constexpr int64_t kMaxReach = int64_t{1} << 24;

// S: the tables have 2S rows.
int64_t span_of(const DebertaConfig& config) {
  return config.position_buckets > 0 ? config.position_buckets : config.max_relative_positions;
}

const DebertaConfig& checked(const DebertaConfig& config) {
  constexpr const char* scope = Deberta::kName;
  const int64_t buckets = config.position_buckets, reach = config.max_relative_positions;
  check_heads(scope, config);
  require(reach >= 1, scope, "max_relative_positions must be >= 1, got ", reach);
  require(reach <= kMaxReach, scope, "max_relative_positions must be <= ", kMaxReach, ", got ",
          reach);
  require(buckets == 0 || buckets >= 2, scope, "position_buckets must be 0 or >= 2, got ", buckets);
  // Log buckets stretch the distances from buckets/2 to max_relative_positions - 1.
  require(buckets == 0 || reach - 1 > buckets / 2, scope, "max_relative_positions must be > ",
          buckets / 2 + 1, " with position_buckets ", buckets, ", got ", reach);
  require(config.far == "hf" || config.far == "clamp", scope, "far must be one of hf, clamp, got '",
          config.far, "'");
  require(config.scale_factor >= 0, scope, "scale_factor must be >= 0, got ", config.scale_factor);
  return config;
}

std::vector<Parameter> parameters_of(const DebertaConfig& config) {
  const Parameter table{
      .name = "pos_key",
      .shape = {config.heads, 2 * span_of(config), config.head_dim},
      .shape_in_words = "heads, 2·(position_buckets or max_relative_positions), head_dim",
      .doc = "PK, the relative table projected like a key"};
  std::vector<Parameter> parameters;
  if (config.c2p || config.p2p) parameters.push_back(table);
  if (config.p2c || config.p2p) {
    parameters.push_back(table);
    parameters.back().name = "pos_query";
    parameters.back().doc = "PQ, the relative table projected like a query";
  }
  return parameters;
}

// B(r) for position_buckets > 0. Float32 step by step, as in the released code that checkpoints
// were trained with: double moves some bucket edges.
int64_t log_bucket(int64_t r, int64_t buckets, int64_t max_position) {
  const int64_t mid = buckets / 2;
  const int64_t distance = std::abs(r);
  if (distance <= mid) return r;
  const float reach = std::log(
      static_cast<float>(static_cast<double>(max_position - 1) / static_cast<double>(mid)));
  const float fraction = std::log(static_cast<float>(distance) / static_cast<float>(mid)) / reach;
  const float steps = std::ceil(fraction * static_cast<float>(mid - 1));
  const int64_t bucket = mid + static_cast<int64_t>(steps);
  return r < 0 ? -bucket : bucket;
}

int64_t slot(int64_t r, const DebertaConfig& config) {
  const int64_t span = span_of(config), farthest = config.max_relative_positions - 1;
  if (config.far == "clamp") r = std::clamp(r, -farthest, farthest);
  const int64_t bucket = config.position_buckets == 0 ? r
                                                      : log_bucket(r, config.position_buckets,
                                                                   config.max_relative_positions);
  return std::clamp<int64_t>(bucket + span, 0, 2 * span - 1);
}

// <a, b> in double, four sums side by side: one alone would wait for each addition.
template <class Element>
double dot(const Element& a, const Element& b, int64_t d) {
  double sums[4] = {0, 0, 0, 0};
  for (int64_t c = 0; c < d; ++c) sums[c % 4] += a(c) * b(c);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// <a[h,x], b[h,x]> for tables (heads, 2S, d) of any floating type.
double row_product(const ConstView& a, const ConstView& b, int64_t h, int64_t x) {
  if (a.dtype == DType::f32 && b.dtype == DType::f32) {
    const auto row = [&](const ConstView& table) {
      return [data = table.at<float>(h, x), stride = table.strides[2]](int64_t c) {
        return static_cast<double>(data[c * stride]);
      };
    };
    return dot(row(a), row(b), a.shape[2]);
  }
  const auto row = [&](const ConstView& table) {
    return [&table, h, x](int64_t c) { return element(table, h, x, c); };
  };
  return dot(row(a), row(b), a.shape[2]);
}

}  // namespace

const Fields<DebertaConfig>& Deberta::description() {
  static const Fields<DebertaConfig> fields{
      kName,
      {
          field("heads", &DebertaConfig::heads, "query heads"),
          field("head_dim", &DebertaConfig::head_dim, "width d of a head"),
          field("position_buckets", &DebertaConfig::position_buckets,
                "log buckets; 0: exact distances (v1)"),
          field("max_relative_positions", &DebertaConfig::max_relative_positions,
                "M: distances are told apart up to M - 1"),
          field("c2p", &DebertaConfig::c2p, "content to position: <q, PK>"),
          field("p2c", &DebertaConfig::p2c, "position to content: <k, PQ>"),
          field("p2p", &DebertaConfig::p2p, "position to position: <PQ, PK>"),
          field("far", &DebertaConfig::far,
                "distances >= M: bucketed on (hf) or held at M - 1 (clamp)", {"hf", "clamp"}),
          field("scale_factor", &DebertaConfig::scale_factor,
                "f in 1/sqrt(d·f); 0: 1 + the number of enabled terms"),
      }};
  return fields;
}

// Slots 0 and 2S - 1 on the two sides, unless the distance is clamped before (far) or the log part
// has no steps (2 or 3 buckets). Slots never fall as the distance grows: the first one is bisected.
int64_t Deberta::reach(const DebertaConfig& config) {
  checked(config);
  if (config.far == "clamp") return config.max_relative_positions - 1;
  if (config.position_buckets == 2 || config.position_buckets == 3) return 1;
  const int64_t last = 2 * span_of(config) - 1;
  const auto is_last = [&](int64_t r) { return slot(r, config) == last && slot(-r, config) == 0; };
  // Odd bucket counts end between two steps, and the last step can lie very far out.
  require(is_last(kMaxReach), kName, "position_buckets ", config.position_buckets,
          " with max_relative_positions ", config.max_relative_positions,
          " and far=hf still changes slots ", kMaxReach,
          " positions away; use an even number of buckets or far=clamp");
  int64_t below = 0, from = kMaxReach;
  while (from - below > 1) {
    const int64_t middle = below + (from - below) / 2;
    (is_last(middle) ? from : below) = middle;
  }
  return from;
}

Deberta::Deberta(const DebertaConfig& config)
    : Encoding(kName, parameters_of(checked(config))), config_(config) {
  const int64_t terms = int{config.c2p} + int{config.p2c} + int{config.p2p};
  const int64_t factor = config.scale_factor > 0 ? config.scale_factor : 1 + terms;
  scale_ = 1 / std::sqrt(static_cast<double>(config.head_dim * factor));

  const int64_t last_row = 2 * span_of(config) - 1;
  const int64_t farthest = reach(config);
  map_.first = -farthest;
  map_.rows.reserve(2 * farthest + 1);
  for (int64_t offset = -farthest; offset <= farthest; ++offset)
    map_.rows.push_back(static_cast<int32_t>(last_row - slot(-offset, config)));
}

Prepared Deberta::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k, scale_);
  Terms& terms = prepared.terms;
  const auto project = [&](const char* name, Side side, const char* table) {
    terms.projections.push_back({.name = name,
                                 .side = side,
                                 .scale = terms.scale,
                                 .plus = {},
                                 .table = parameter(table).reversed(1),
                                 .map = map_});
  };
  if (config_.c2p) project("c2p", Side::query, "pos_key");
  if (config_.p2c) project("p2c", Side::key, "pos_query");
  if (config_.p2p) terms.biases.push_back(position_to_position(terms.scale));
  return prepared;
}

// s·<PQ[slot], PK[slot]> depends on the pair only through its slot: a bias, O(S·d) per head.
OffsetBias Deberta::position_to_position(double scale) const {
  const ConstView pos_key = parameter("pos_key").reversed(1);      // (heads, 2S, d)
  const ConstView pos_query = parameter("pos_query").reversed(1);  // (heads, 2S, d)
  OffsetBias bias;
  bias.name = "p2p";
  bias.first = map_.first;
  bias.count = static_cast<int64_t>(map_.rows.size());
  bias.values.resize(config_.heads * bias.count);
  std::vector<double> products(pos_key.shape[1]);
  for (int64_t h = 0; h < config_.heads; ++h) {
    for (int64_t x = 0; x < pos_key.shape[1]; ++x)
      products[x] = row_product(pos_query, pos_key, h, x);
    for (int64_t n = 0; n < bias.count; ++n)
      bias.values[h * bias.count + n] = scale * products[map_.rows[n]];
  }
  return bias;
}

void Deberta::pullback(const Problem&, const Prepared& prepared, const View&, const View&,
                       const TermGradients& dterms, ParameterGradients& gradients) const {
  size_t term = 0;
  const auto add_table = [&](const char* name) {
    add_to(gradients.at(name).view().reversed(1), dterms.projections[term++].table.view());
  };
  if (config_.c2p) add_table("pos_key");
  if (config_.p2c) add_table("pos_query");
  if (config_.p2p)
    pull_back_position_to_position(prepared.terms.scale, dterms.biases[0], gradients);
}

// dPK[x] += s·b[x]·PQ[x] and dPQ[x] += s·b[x]·PK[x], b[x] the sum over the offsets of slot x.
void Deberta::pull_back_position_to_position(double scale, const BiasGradient& dbias,
                                             ParameterGradients& gradients) const {
  const ConstView pos_key = parameter("pos_key").reversed(1);      // (heads, 2S, d)
  const ConstView pos_query = parameter("pos_query").reversed(1);  // (heads, 2S, d)
  const View dpos_key = gradients.at("pos_key").view().reversed(1);
  const View dpos_query = gradients.at("pos_query").view().reversed(1);
  const size_t offsets = map_.rows.size();
  for (int64_t h = 0; h < config_.heads; ++h) {
    std::vector<double> sums(pos_key.shape[1]);
    for (size_t n = 0; n < offsets; ++n) sums[map_.rows[n]] += dbias.values[h * offsets + n];
    for (int64_t x = 0; x < pos_key.shape[1]; ++x) {
      if (sums[x] == 0) continue;
      const double factor = scale * sums[x];
      const auto add = [&](const View& to, const ConstView& other) {
        for (int64_t c = 0; c < config_.head_dim; ++c)
          set_element(to, element(to, h, x, c) + factor * element(other, h, x, c), h, x, c);
      };
      add(dpos_key, pos_query);
      add(dpos_query, pos_key);
    }
  }
}

}  // namespace locant::inline v0
