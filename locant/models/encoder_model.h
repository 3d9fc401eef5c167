// The one engine of the encoder families: embeddings, layers, head. A family is a folder that reads
// its config.json and fills these parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "locant/layers/encoder_layer.h"
#include "locant/models/batch.h"
#include "locant/models/head.h"
#include "locant/models/model.h"
#include "locant/models/source.h"
#include "locant/models/workspace.h"

namespace locant::inline v0 {

// x = LayerNorm(projection(word + position + token type))
struct InputEmbeddings {
  ConstView words;        // (vocabulary, E)
  ConstView positions;    // (max_length, E), or empty
  ConstView token_types;  // (types, E), or empty
  Linear projection;      // E -> D, if E is not D
  LayerNorm norm;
};

// DeBERTa-v2's convolution beside layer 0, over the embeddings of a sequence:
//   x = LayerNorm(layer 0's output + activation(convolution(embeddings)))
struct ConvolutionStep {
  int64_t kernel = 0;          // 0: there is none
  std::vector<Linear> groups;  // each kernel·D/groups -> D/groups, taps outermost
  Activation activation = Activation::tanh;
  LayerNorm norm;
};

struct EncoderParts {
  ModelInfo info;
  PositionRule positions;
  InputEmbeddings embeddings;
  std::vector<EncoderLayer> layers;
  ConvolutionStep convolution;
  // The enhanced mask decoder's absolute positions (max_length, D), or empty: the last layer runs
  // twice, with queries from h + positions and then from the first result, keys and values from h,
  // the output of the layer before it.
  ConstView decoder_positions;
  Head head;
  std::shared_ptr<ModelStorage> storage;
};

class EncoderModel final : public Model {
 public:
  explicit EncoderModel(EncoderParts parts);
  const ModelInfo& info() const override { return parts_.info; }
  ModelOutput run(const ModelInput& input) const override;

 private:
  struct Workspace {
    EncoderScratch scratch;
    FloatBuffer a, b, embedded, gathered, convolved;
  };

  View embed(const Batch& batch, Workspace& work) const;
  View convolve(const ConstView& x, const Batch& batch, Workspace& work) const;
  Tensor encode(const Batch& batch, AttentionWish wish, Workspace& work) const;
  void decode(const Batch& batch, const View& h, std::vector<Tensor>* probabilities,
              Workspace& work, const View& other, const View& out) const;

  EncoderParts parts_;
  mutable WorkspacePool<Workspace> workspaces_;
};

}  // namespace locant::inline v0
