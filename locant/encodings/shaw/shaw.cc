#include "locant/encodings/shaw/shaw.h"

#include <algorithm>
#include <numeric>

#include "locant/encodings/checks.h"
#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kMaxDistance = int64_t{1} << 24;

const ShawConfig& checked(const ShawConfig& config) {
  check_heads(Shaw::kName, config);
  require(config.max_distance >= 1, Shaw::kName, "max_distance must be >= 1, got ",
          config.max_distance);
  require(config.max_distance <= kMaxDistance, Shaw::kName,
          "max_distance must be <= ", kMaxDistance, ", got ", config.max_distance);
  return config;
}

std::vector<Parameter> parameters_of(const ShawConfig& config) {
  const int64_t rows = 2 * config.max_distance + 1;
  Parameter keys{.name = "keys",
                 .shape = {rows, config.head_dim},
                 .shape_in_words = "2·max_distance + 1, head_dim",
                 .doc = "aK, met by queries"};
  if (config.per_head) {
    keys.shape.insert(keys.shape.begin(), config.heads);
    keys.shape_in_words = "heads, " + keys.shape_in_words;
  }
  if (!config.values) return {keys};
  Parameter values = keys;
  values.name = "values";
  values.doc = "aV, added to values";
  return {keys, values};
}

void check_distance(const ShawConfig& config, const Problem& problem) {
  const Problem::Offsets offsets = problem.offsets();
  const int64_t farthest = std::max(-offsets.first, offsets.last);
  require(farthest <= config.max_distance, Shaw::kName, "a key is ", farthest,
          " positions from its query but max_distance is ", config.max_distance,
          " and clip is false");
}

// A parameter or its gradient as (heads | 1, rows, d), with rows that go up with pos(j) - pos(i).
template <class AnyView>
AnyView as_table(const ShawConfig& config, AnyView values) {
  if (!config.per_head) {
    values.shape = {1, values.shape[0], values.shape[1], 1};
    values.strides = {0, values.strides[0], values.strides[1], 0};
    values.rank = 3;
  }
  return config.reversed ? values.reversed(1) : values;
}

}  // namespace

const Fields<ShawConfig>& Shaw::description() {
  static const Fields<ShawConfig> fields{
      kName,
      {
          field("heads", &ShawConfig::heads, "query heads"),
          field("head_dim", &ShawConfig::head_dim, "width d of a head"),
          field("max_distance", &ShawConfig::max_distance, "k: distances beyond it count as k"),
          field("values", &ShawConfig::values, "relative values too"),
          field("per_head", &ShawConfig::per_head, "a table per head"),
          field("clip", &ShawConfig::clip, "false: distances beyond max_distance are an error"),
          field("reversed", &ShawConfig::reversed, "rows by pos(i) - pos(j), as in BERT"),
          field("key_query", &ShawConfig::key_query, "keys meet the table too, as in BERT"),
      }};
  return fields;
}

Shaw::Shaw(const ShawConfig& config)
    : Encoding(kName, parameters_of(checked(config))), config_(config) {
  map_.first = -config.max_distance;
  map_.rows.resize(2 * config.max_distance + 1);
  std::iota(map_.rows.begin(), map_.rows.end(), 0);
}

Prepared Shaw::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  require(!config_.values || problem.value_dim == config_.head_dim, kName,
          "relative values have width ", config_.head_dim, " but v has ", problem.value_dim);
  if (!config_.clip) check_distance(config_, problem);

  Prepared prepared = unchanged(problem, q, k);
  Terms& terms = prepared.terms;
  const auto project = [&](const char* name, Side side) {
    terms.projections.push_back({.name = name,
                                 .side = side,
                                 .scale = terms.scale,
                                 .plus = {},
                                 .table = as_table(config_, parameter("keys")),
                                 .map = map_});
  };
  project("keys", Side::query);
  if (config_.key_query) project("keys_key", Side::key);
  if (config_.values)
    terms.values.push_back(
        {.name = "values", .table = as_table(config_, parameter("values")), .map = map_});
  return prepared;
}

void Shaw::pullback(const Problem&, const Prepared&, const View&, const View&,
                    const TermGradients& dterms, ParameterGradients& gradients) const {
  const View dkeys = as_table(config_, gradients.at("keys").view());
  for (const TableGradient& side : dterms.projections) add_to(dkeys, side.table.view());
  if (config_.values)
    add_to(as_table(config_, gradients.at("values").view()), dterms.values[0].table.view());
}

}  // namespace locant::inline v0
