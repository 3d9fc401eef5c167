// Words in clusters by frequency: rare words have narrow vectors (Grave et al. 2017, Baevski & Auli
// 2019), as Transformer-XL embeds and predicts them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "locant/core/view.h"
#include "locant/layers/encoder_layer.h"
#include "locant/layers/linear.h"

namespace locant::inline v0 {

// x = √D·projection_c(words_c[id - begin_c]),  c the cluster of the id
struct AdaptiveEmbedding {
  struct Cluster {
    int64_t begin = 0;  // its first word
    ConstView words;    // (count, E_c)
    Linear projection;  // E_c -> D; none if E_c is D
  };
  std::vector<Cluster> clusters;

  // out (count of ids, D). The ids must be words.
  void run(std::span<const int64_t> ids, FloatBuffer& rows, FloatBuffer& projected,
           const View& out) const;
};

// log p(word) = log-softmax over the first cluster's words and the other clusters; for words of
// those, that of the cluster plus the log-softmax within it. Scores of a cluster's words are
//   projection_c(h)·words_cᵀ + bias_c
struct AdaptiveSoftmax {
  struct Cluster {
    int64_t begin = 0;
    Linear projection;  // D -> E_c; none if E_c is D
    ConstView words;    // (count, E_c), often the embedding's
    ConstView bias;     // (count)
  };
  std::vector<Cluster> clusters;
  ConstView cluster_words, cluster_bias;  // (clusters - 1, E_0), (clusters - 1), or empty

  // h (T, D) -> log-probabilities (T, vocabulary)
  void run(const ConstView& h, const View& out) const;
};

}  // namespace locant::inline v0
