// Llama's layers in C++, with and without a cache of keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/encodings/none/none.h"
#include "locant/encodings/rope/rope.h"
#include "locant/layers/encoder_layer.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "locant/models/batch.h"
#include "locant/models/kv_cache.h"
#include "locant/models/llama/config.h"
#include "locant/models/model.h"
#include "locant/models/source.h"
#include "locant/models/workspace.h"

namespace locant::inline v0 {

struct LlamaLayer {
  RmsNorm attention_norm;
  Linear qkv;                    // D -> (H + 2·Hkv)·d: queries, keys, values
  RmsNorm query_norm, key_norm;  // over each head, or empty
  int64_t window = 0;            // keys that a query sees, itself included; 0: all before it
  Linear output;                 // H·d -> D
  RmsNorm mlp_norm;
  Linear gate, up;  // D -> I
  Activation activation = Activation::silu;
  Linear down;  // I -> D
};

struct LlamaParts {
  LlamaConfig config;
  ConstView words;  // (vocabulary, D)
  std::vector<LlamaLayer> layers;
  std::vector<std::shared_ptr<const Encoding>> encodings;  // (layers), or empty: RoPE
  RmsNorm norm;
  Linear head;                // D -> vocabulary or labels, or none
  std::vector<int64_t> stop;  // tokens that end a text
  std::shared_ptr<ModelStorage> storage;
};

class LlamaModel final : public Model {
 public:
  explicit LlamaModel(LlamaParts parts);
  const ModelInfo& info() const override { return parts_.config.info; }
  ModelOutput run(const ModelInput& input) const override;
  std::vector<std::vector<int64_t>> generate(const ModelInput& input,
                                             const GenerateOptions& options) const override;

 private:
  // Tokens that go through the layers together.
  struct Step {
    std::vector<int64_t> ids;         // (T)
    std::vector<int64_t> positions;   // (T)
    std::vector<Sequence> sequences;  // their tokens, after those that a cache holds
    std::vector<int64_t> last_rows;   // (sequences) the row of each one's last token
    std::vector<int64_t> rotated;     // (sequences) cached keys that stay as they were turned
    AttentionWish wish;

    void add(std::span<const int64_t> tokens, int64_t past, int64_t k_begin, int64_t kept);
  };
  struct Workspace {
    FloatBuffer x, y, normed, qkv, context, gate, last, last_context, logits;
  };

  Step prompts(const ModelInput& input) const;
  enum class Rows : uint8_t { all, last_of_each_sequence };
  View forward(const Step& step, Rows rows, KvCache* cache, Workspace& work) const;
  void attention(int64_t layer, const Step& step, KvCache* cache, const View& qkv,
                 const View& context) const;
  void rotate(const Step& step, KvCache* cache, const View& qkv) const;
  void remember(const Step& step, int64_t layer, KvCache& cache, const View& qkv) const;
  void feed_forward(const LlamaLayer& layer, const View& context, const View& x,
                    Workspace& work) const;

  LlamaParts parts_;
  Rope rope_;
  None none_;
  bool by_length_;  // the rotation changes with the length of a sequence
  mutable WorkspacePool<Workspace> workspaces_;
};

}  // namespace locant::inline v0
