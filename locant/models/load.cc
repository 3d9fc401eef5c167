#include <utility>

#include "locant/core/error.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/models/bert/bert.h"
#include "locant/models/deberta/deberta.h"
#include "locant/models/encoder_model.h"
#include "locant/models/model.h"

namespace locant::inline v0 {
namespace {

using Build = EncoderParts (*)(const Config&, const LoadOptions&, const Source&);

// The families by config.json's model_type.
constexpr std::pair<const char*, Build> kFamilies[] = {{"bert", build_bert},
                                                       {"roberta", build_bert},
                                                       {"xlm-roberta", build_bert},
                                                       {"camembert", build_bert},
                                                       {"deberta", build_deberta},
                                                       {"deberta-v2", build_deberta}};

Build family_of(const Config& config) {
  const std::string type = config.text("model_type");
  std::string known;
  for (const auto& [name, build] : kFamilies) {
    if (type == name) return build;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  config.reject("model_type", "is '" + type + "', but known are " + known);
}

}  // namespace

std::shared_ptr<const Model> load(const std::string& dir, const LoadOptions& options) {
  require_folder("load", dir);
  const Config config = Config::read(join_path(dir, "config.json"));
  const Build build = family_of(config);
  const Weights weights = Weights::open(dir);
  weights.ignore("position_ids");
  static_cast<void>(build(config, options, Source(weights, true, std::make_shared<ModelStorage>())));
  weights.require_complete();
  auto storage = std::make_shared<ModelStorage>();
  EncoderParts parts = build(config, options, Source(weights, false, storage));
  parts.info.parameters = storage->parameters;
  parts.info.bytes = storage->bytes;
  storage->counted.clear();
  parts.storage = std::move(storage);
  release_pages(weights);
  return std::make_shared<EncoderModel>(std::move(parts));
}

}  // namespace locant::inline v0
