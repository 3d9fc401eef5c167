#include <utility>

#include "locant/core/error.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/models/bert/bert.h"
#include "locant/models/deberta/deberta.h"
#include "locant/models/encoder_model.h"
#include "locant/models/llama/llama.h"
#include "locant/models/model.h"
#include "locant/models/mpnet/mpnet.h"
#include "locant/models/named.h"
#include "locant/models/pooling.h"
#include "locant/models/t5/t5.h"
#include "locant/models/transformer_xl/transformer_xl.h"
#include "locant/models/xlnet/xlnet.h"

namespace locant::inline v0 {
namespace {

// Called twice: see Source.
using Build = std::shared_ptr<const Model> (*)(const Config&, const LoadOptions&, const Source&);

template <EncoderParts (*build)(const Config&, const LoadOptions&, const Source&)>
std::shared_ptr<const Model> encoder(const Config& config, const LoadOptions& options,
                                     const Source& source) {
  EncoderParts parts = build(config, options, source);
  parts.storage = source.finish(parts.info);
  return std::make_shared<EncoderModel>(std::move(parts));
}

// The families by config.json's model_type.
constexpr std::pair<const char*, Build> kFamilies[] = {
    {"bert", encoder<build_bert>},
    {"roberta", encoder<build_bert>},
    {"xlm-roberta", encoder<build_bert>},
    {"camembert", encoder<build_bert>},
    {"deberta", encoder<build_deberta>},
    {"deberta-v2", encoder<build_deberta>},
    {"mpnet", encoder<build_mpnet>},
    {"t5", build_t5},
    {"mt5", build_t5},
    {"umt5", build_t5},
    {"xlnet", build_xlnet},
    {"transfo-xl", build_transformer_xl},
    {"llama", build_llama},
    {"mistral", build_llama},
    {"qwen2", build_llama},
    {"qwen3", build_llama},
    {"phi3", build_llama},
    {"locant", build_llama},
};

}  // namespace

std::shared_ptr<const Model> load(const std::string& dir, const LoadOptions& options) {
  require_folder("load", dir);
  const Config config = Config::read(join_path(dir, "config.json"));
  const Build build = named(config, "model_type", config.text("model_type"), kFamilies);
  const Weights weights = Weights::open(dir);
  weights.ignore("position_ids");
  weights.ignore("rotary_emb.inv_freq");
  weights.ignore("pos_emb.inv_freq");
  static_cast<void>(build(config, options, Source(weights, true, std::make_shared<ModelStorage>())));
  weights.require_complete();
  const auto storage = std::make_shared<ModelStorage>();
  storage->pooling = read_pooling(dir);
  const auto model = build(config, options, Source(weights, false, storage));
  release_pages(weights);
  return model;
}

std::vector<std::vector<int64_t>> Model::generate(const ModelInput& /*input*/,
                                                  const GenerateOptions& /*options*/) const {
  fail("generate", "a ", info().model_type, " model with head '", info().head,
       "' does not generate text");
}

}  // namespace locant::inline v0
