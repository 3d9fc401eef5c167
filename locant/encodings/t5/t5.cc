#include "locant/encodings/t5/t5.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "locant/encodings/checks.h"

namespace locant::inline v0 {
namespace {

// Buckets are int32 and one is kept per offset up to max_distance.
constexpr int64_t kMaxDistance = int64_t{1} << 24;

int64_t buckets_per_direction(const T5Config& config) {
  return config.bidirectional ? config.num_buckets / 2 : config.num_buckets;
}

const T5Config& checked(const T5Config& config) {
  check_heads(T5::kName, config);
  const int64_t least = config.bidirectional ? 4 : 2;
  require(config.num_buckets >= least, T5::kName, "num_buckets must be >= ", least, " if ",
          config.bidirectional ? "bidirectional" : "not bidirectional", ", got ",
          config.num_buckets);
  const int64_t exact = buckets_per_direction(config) / 2;
  require(config.max_distance > exact, T5::kName, "max_distance must be > ", exact,
          ", the distances with a bucket of their own, got ", config.max_distance);
  require(config.max_distance <= kMaxDistance, T5::kName, "max_distance must be <= ", kMaxDistance,
          ", got ", config.max_distance);
  require(std::isfinite(config.scale) && config.scale != 0, T5::kName,
          "scale must be finite and not 0, got ", config.scale);
  return config;
}

// Bucket of a distance n >= 0 within its direction. Released models were trained with float32
// logarithms, and double moves some bucket edges, so the arithmetic is float32 step by step.
int64_t distance_bucket(int64_t n, int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  if (n < exact) return n;
  const float reach =
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float fraction = std::log(static_cast<float>(n) / static_cast<float>(exact)) / reach;
  const float steps = fraction * static_cast<float>(buckets - exact);
  return std::min(buckets - 1, exact + static_cast<int64_t>(steps));
}

}  // namespace

const Fields<T5Config>& T5::description() {
  static const Fields<T5Config> fields{
      kName,
      {
          field("heads", &T5Config::heads, "query heads"),
          field("head_dim", &T5Config::head_dim, "width d of a head"),
          field("num_buckets", &T5Config::num_buckets, "rows of the bias table"),
          field("max_distance", &T5Config::max_distance, "farther keys share the last bucket"),
          field("bidirectional", &T5Config::bidirectional, "half the buckets for keys ahead"),
          field("scale", &T5Config::scale, "c, the factor of <q,k>"),
      }};
  return fields;
}

T5::T5(const T5Config& config)
    : Encoding(kName, {{.name = "bias",
                        .shape = {checked(config).num_buckets, config.heads},
                        .shape_in_words = "num_buckets, heads",
                        .doc = "b, added to the scores"}}),
      config_(config) {
  const int64_t buckets = buckets_per_direction(config);
  std::vector<int32_t> by_distance;
  for (int64_t n = 0; by_distance.empty() || by_distance.back() < buckets - 1; ++n)
    by_distance.push_back(static_cast<int32_t>(distance_bucket(n, buckets, config.max_distance)));
  // Keys behind the query, the farthest first, then keys ahead, or offset 0 alone.
  first_ = 1 - static_cast<int64_t>(by_distance.size());
  buckets_.assign(by_distance.rbegin(), by_distance.rend());
  if (config.bidirectional)
    for (size_t n = 1; n < by_distance.size(); ++n)
      buckets_.push_back(static_cast<int32_t>(buckets) + by_distance[n]);
}

Prepared T5::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  const ConstView table = parameter("bias");  // (num_buckets, heads)
  OffsetBias bias;
  bias.name = "bias";
  bias.first = first_;
  bias.count = static_cast<int64_t>(buckets_.size());
  bias.values.resize(config_.heads * bias.count);
  std::vector<double> column(config_.num_buckets);
  for (int64_t h = 0; h < config_.heads; ++h) {
    for (int64_t b = 0; b < config_.num_buckets; ++b) column[b] = element(table, b, h);
    double* row = &bias.values[h * bias.count];
    for (int64_t n = 0; n < bias.count; ++n) row[n] = column[buckets_[n]];
  }
  Prepared prepared = unchanged(problem, q, k, config_.scale);
  prepared.terms.biases.push_back(std::move(bias));
  return prepared;
}

// A number of the table is added to the scores of every offset in its bucket.
void T5::pullback(const Problem&, const Prepared&, const View&, const View&,
                  const TermGradients& dterms, ParameterGradients& gradients) const {
  const std::vector<double>& dbias = dterms.biases[0].values;  // (heads, offsets)
  const View dtable = gradients.at("bias").view();             // (num_buckets, heads)
  const size_t offsets = buckets_.size();
  for (int64_t h = 0; h < config_.heads; ++h) {
    std::vector<double> sums(config_.num_buckets);
    for (size_t n = 0; n < offsets; ++n) sums[buckets_[n]] += dbias[h * offsets + n];
    for (int64_t b = 0; b < config_.num_buckets; ++b)
      set_element(dtable, element(dtable, b, h) + sums[b], b, h);
  }
}

}  // namespace locant::inline v0
