#include "locant/models/transformer_xl/adaptive.h"

#include <algorithm>
#include <cmath>

#include "locant/core/executor.h"
#include "locant/core/tensor.h"
#include "locant/layers/embedding.h"
#include "locant/layers/heads.h"

namespace locant::inline v0 {
namespace {

// log of the sum of e^x over both rows, without overflow.
double log_sum_exp(std::span<const float> x, std::span<const float> more) {
  float largest = x[0];
  for (const float value : x) largest = std::max(largest, value);
  for (const float value : more) largest = std::max(largest, value);
  double sum = 0;
  for (const float value : x) sum += std::exp(value - largest);
  for (const float value : more) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

void add(std::span<float> x, double value) {
  for (float& each : x) each = static_cast<float>(each + value);
}

}  // namespace

void AdaptiveEmbedding::run(std::span<const int64_t> ids, FloatBuffer& rows,
                            FloatBuffer& projected, const View& out) const {
  const int64_t width = out.shape[1];
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(width)));
  std::vector<int64_t> own, at;  // words of a cluster, and the rows that ask for them
  for (const Cluster& cluster : clusters) {
    const int64_t end = cluster.begin + cluster.words.shape[0];
    own.clear();
    at.clear();
    for (size_t n = 0; n < ids.size(); ++n)
      if (ids[n] >= cluster.begin && ids[n] < end) {
        own.push_back(ids[n] - cluster.begin);
        at.push_back(static_cast<int64_t>(n));
      }
    if (own.empty()) continue;
    const auto count = static_cast<int64_t>(own.size());
    View found = rows.take(count, cluster.words.shape[1]);
    gather_rows(cluster.words, own, false, found);
    if (cluster.projection) {
      const View wide = projected.take(count, width);
      cluster.projection.run(found, wide);
      found = wide;
    }
    for (int64_t n = 0; n < count; ++n)
      std::transform(found.at<float>(n), found.at<float>(n) + width, out.at<float>(at[n]),
                     [scale](float x) { return x * scale; });
  }
}

void AdaptiveSoftmax::run(const ConstView& h, const View& out) const {
  const int64_t tokens = h.shape[0], others = static_cast<int64_t>(clusters.size()) - 1;
  Tensor chosen(DType::f32, {tokens, others});  // scores of the other clusters
  for (const Cluster& cluster : clusters) {
    Tensor narrow;
    ConstView x = h;
    if (cluster.projection) {
      narrow = Tensor(DType::f32, {tokens, cluster.projection.outputs()});
      cluster.projection.run(h, narrow.view());
      x = narrow.view();
    }
    project(x, cluster.words, cluster.bias, columns(out, cluster.begin, cluster.words.shape[0]));
    if (cluster.begin == 0 && others > 0) project(x, cluster_words, cluster_bias, chosen.view());
  }
  executor()->parallel_for(tokens, [&](int64_t row, int) {
    const std::span<float> scores(chosen.view().at<float>(row), static_cast<size_t>(others));
    const auto words = [&](const Cluster& cluster) {
      return std::span<float>(out.at<float>(row, cluster.begin),
                              static_cast<size_t>(cluster.words.shape[0]));
    };
    const std::span<float> first = words(clusters[0]);
    const double all = log_sum_exp(first, scores);
    add(first, -all);
    for (int64_t c = 0; c < others; ++c) {
      const std::span<float> own = words(clusters[static_cast<size_t>(c) + 1]);
      add(own, scores[static_cast<size_t>(c)] - all - log_sum_exp(own, {}));
    }
  });
}

}  // namespace locant::inline v0
