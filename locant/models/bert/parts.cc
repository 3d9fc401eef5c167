#include "locant/models/bert/parts.h"

namespace locant::inline v0 {

double bert_eps(const Config& config) {
  return config.number_or("layer_norm_eps", 1e-12, 0);
}

EncoderLayer build_bert_layer(const Config& config, const ModelInfo& info,
                              const BertLayerNames& names, const Source& source,
                              const std::shared_ptr<const Encoding>& encoding) {
  const double eps = bert_eps(config);
  const int64_t width = info.hidden_size;
  EncoderLayer layer;
  layer.heads = info.heads;
  layer.head_dim = width / info.heads;
  layer.encoding = encoding;
  std::array<ConstView, 3> weights, biases;
  for (size_t n = 0; n < names.qkv.size(); ++n) {
    const Source part = source.scope(names.qkv[n]);
    weights[n] = part.get("weight", {width, width});
    biases[n] = part.get("bias", {width});
  }
  layer.qkv = source.linear(weights, biases);
  layer.output = source.linear(names.output, width, width);
  layer.output_norm = source.norm(names.output_norm, width, eps);
  layer.up = source.linear("intermediate.dense.", info.intermediate_size, width);
  layer.activation = activation_of(config, "hidden_act", "gelu");
  layer.down = source.linear("output.dense.", width, info.intermediate_size);
  layer.norm = source.norm("output.LayerNorm.", width, eps);
  return layer;
}

namespace {

// bert: cls.predictions.transform.{dense,LayerNorm}, decoder; roberta: lm_head.{dense,layer_norm}.
void build_masked_lm(const Config& config, const ModelInfo& info, bool roberta,
                     const Source& source, const ConstView& words, Head& head) {
  const double eps = bert_eps(config);
  const int64_t width = info.hidden_size;
  const Source all = source.scope(roberta ? "lm_head." : "cls.predictions.");
  const Source transform = roberta ? all : all.scope("transform.");
  head.transform = transform.linear("dense.", width, width);
  head.transform_activation =
      roberta ? Activation::gelu : activation_of(config, "hidden_act", "gelu");
  head.transform_norm = transform.norm(roberta ? "layer_norm." : "LayerNorm.", width, eps);
  // Tied weights are stored once. Biases were tied even where weights are not, before
  // transformers 5.
  const bool own = !config.flag_or("tie_word_embeddings", true);
  head.decoder = own ? all.table("decoder.weight", info.vocab_size, width) : words;
  const bool own_bias = own && all.has("decoder.bias");
  head.decoder_bias = all.copy(own_bias ? "decoder.bias" : "bias", {info.vocab_size});
}

}  // namespace

void build_bert_head(const Config& config, ModelInfo& info, bool roberta, const Source& source,
                     const ConstView& words, Head& head) {
  const int64_t width = info.hidden_size;
  switch (head.kind) {
    case HeadKind::base:
      // A checkpoint of a masked language model has no pooler.
      if (source.has("pooler.dense.weight"))
        head.pooler = source.linear("pooler.dense.", width, width);
      return;
    case HeadKind::masked_lm:
      return build_masked_lm(config, info, roberta, source, words, head);
    case HeadKind::sequence_classification:
      head.pooler = source.linear(roberta ? "classifier.dense." : "pooler.dense.", width, width);
      head.classifier = label_classifier(
          config, source, roberta ? "classifier.out_proj." : "classifier.", info);
      info.per_token = false;
      return;
    case HeadKind::token_classification:
      head.classifier = label_classifier(config, source, "classifier.", info);
      return;
    case HeadKind::question_answering:
      head.classifier = source.linear("qa_outputs.", 2, width);
      return;
  }
}

}  // namespace locant::inline v0
