// T5 as a model: an encoder, and with it a decoder that gives logits or text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "locant/models/batch.h"
#include "locant/models/kv_cache.h"
#include "locant/models/model.h"
#include "locant/models/source.h"
#include "locant/models/t5/config.h"
#include "locant/models/t5/layer.h"
#include "locant/models/workspace.h"

namespace locant::inline v0 {

struct T5Parts {
  T5ModelConfig config;
  ConstView words;  // (vocabulary, D)
  std::vector<T5EncoderLayer> encoder;
  RmsNorm encoder_norm;
  std::vector<T5DecoderLayer> decoder;  // empty: there is only the encoder
  RmsNorm decoder_norm;                 // times D^-0.5 if the model scales its output
  Linear lm_head;                       // D -> vocabulary
  std::shared_ptr<ModelStorage> storage;
};

class T5Model final : public Model {
 public:
  explicit T5Model(T5Parts parts);
  const ModelInfo& info() const override { return parts_.config.info; }
  ModelOutput run(const ModelInput& input) const override;
  std::vector<std::vector<int64_t>> generate(const ModelInput& input,
                                             const GenerateOptions& options) const override;

 private:
  struct Workspace {
    EncoderScratch scratch;
    FloatBuffer a, b;
  };

  // Tokens that come next in a sequence.
  struct Next {
    int64_t sequence = 0;
    std::span<const int64_t> ids;
  };

  // What the decoder's layers look back on.
  struct Memory {
    KvCache self;
    std::vector<int64_t> lengths;   // (N) tokens in it; 0: none yet, or the sequence has ended
    std::vector<Tensor> cross;      // by layer, (encoder's rows, 2·H·d)
    std::vector<Sequence> encoded;  // the encoder's rows of each sequence
  };

  Tensor encode(const Batch& batch, AttentionWish wish, Workspace& work) const;
  Memory remember(const Batch& batch, AttentionWish wish, Workspace& work) const;
  Tensor decode(std::span<const Next> next, Memory& memory, Workspace& work) const;
  Tensor logits(const ConstView& hidden) const;

  T5Parts parts_;
  mutable WorkspacePool<Workspace> workspaces_;
};

}  // namespace locant::inline v0
