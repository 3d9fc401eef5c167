// Transformer-XL's layers in C++, with memories; generation keeps their keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/layers/recurrent_layer.h"
#include "locant/models/batch.h"
#include "locant/models/kv_cache.h"
#include "locant/models/memory.h"
#include "locant/models/model.h"
#include "locant/models/projected.h"
#include "locant/models/source.h"
#include "locant/models/transformer_xl/adaptive.h"
#include "locant/models/workspace.h"

namespace locant::inline v0 {

struct TransformerXLParts {
  ModelInfo info;
  AdaptiveEmbedding words;
  std::vector<RecurrentLayer> layers;
  std::vector<ProjectedEncodings::Make> encodings;
  int64_t farthest = 0;      // distances beyond it are as it
  int64_t mem_len = 0;       // rows of memory; a text begins with so many zeros
  bool same_length = false;  // every query sees mem_len keys, itself included
  AdaptiveSoftmax softmax;   // of a language model
  Linear classifier;         // of the last token, or none
  std::vector<int64_t> stop;
  std::shared_ptr<ModelStorage> storage;
};

class TransformerXLModel final : public Model {
 public:
  explicit TransformerXLModel(TransformerXLParts parts);
  const ModelInfo& info() const override { return parts_.info; }
  ModelOutput run(const ModelInput& input) const override;
  std::vector<std::vector<int64_t>> generate(const ModelInput& input,
                                             const GenerateOptions& options) const override;

 private:
  struct Workspace {
    RecurrentScratch scratch;
    FloatBuffer a, b, joined, rows, projected, last, scores;
  };
  // Keys and values of past tokens, and the sequences of a step over them.
  struct Cached {
    KvCache& cache;
    std::vector<Sequence> sequences;
  };

  // -> (T, D). Queries see at most `window` keys before their own; -1: all.
  View forward(const Batch& batch, const Memories& memories, int64_t window, const Cached* cached,
               std::vector<Tensor>* mems, AttentionWish wish, Workspace& work) const;
  View last_rows(const Batch& batch, const ConstView& x, Workspace& work) const;

  TransformerXLParts parts_;
  ProjectedEncodings encodings_;
  mutable WorkspacePool<Workspace> workspaces_;
};

}  // namespace locant::inline v0
