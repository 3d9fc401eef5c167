// XLNet's layers in C++: memories, segments, and two streams if the input asks for targets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "locant/layers/recurrent_layer.h"
#include "locant/models/batch.h"
#include "locant/models/head.h"
#include "locant/models/memory.h"
#include "locant/models/model.h"
#include "locant/models/projected.h"
#include "locant/models/source.h"
#include "locant/models/workspace.h"

namespace locant::inline v0 {

struct XLNetParts {
  ModelInfo info;
  ConstView words;     // (vocabulary, D)
  ConstView mask_emb;  // (1, 1, D) what the query stream begins with
  std::vector<RecurrentLayer> layers;
  std::vector<ProjectedEncodings::Make> encodings;
  int64_t farthest = 0;      // distances beyond it are as it
  bool causal = false;       // attn_type "uni"
  bool same_length = false;  // every query sees as many tokens before it
  MemoryRule memory;
  bool summary_of_last = true;  // a text's summary is that of its last token, else of its first
  Head head;
  ConstView decoder, decoder_bias;  // (vocabulary, D), (vocabulary) of the language model, or empty
  std::shared_ptr<ModelStorage> storage;
};

class XLNetModel final : public Model {
 public:
  explicit XLNetModel(XLNetParts parts);
  const ModelInfo& info() const override { return parts_.info; }
  ModelOutput run(const ModelInput& input) const override;

 private:
  struct Workspace {
    RecurrentScratch content, query;  // of the two streams
    FloatBuffer a, b, joined, targets_a, targets_b;
  };
  struct Call;  // what all layers share

  // One layer's attention: contexts of the content stream, and of the query stream if there is one.
  void attention(int64_t layer, const Call& call, const View& q, const View& targets,
                 const RecurrentLayer::KeysValues& kv, const View& out,
                 const View& out_targets) const;

  XLNetParts parts_;
  ProjectedEncodings encodings_;
  mutable WorkspacePool<Workspace> workspaces_;
};

}  // namespace locant::inline v0
