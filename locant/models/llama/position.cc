#include "locant/models/llama/position.h"

#include <algorithm>
#include <utility>

#include "locant/encodings/registry.h"
#include "locant/models/named.h"
#include "locant/models/sizes.h"

namespace locant::inline v0 {
namespace {

// The key's value in the type that the field has.
FieldValue value_of(const Config& config, const Field& field) {
  const auto read = [&](const auto& fallback) -> FieldValue {
    using Type = std::decay_t<decltype(fallback)>;
    if constexpr (std::is_same_v<Type, bool>)
      return config.flag(field.name);
    else if constexpr (std::is_same_v<Type, int64_t>)
      return config.integer(field.name);
    else if constexpr (std::is_same_v<Type, double>)
      return config.number(field.name);
    else if constexpr (std::is_same_v<Type, std::string>)
      return config.text(field.name);
    else
      return config.numbers(field.name);
  };
  return std::visit(read, field.fallback);
}

const EncodingEntry& entry_of(const Config& settings) {
  std::vector<std::pair<std::string, const EncodingEntry*>> all;
  for (const EncodingEntry& entry : encodings()) all.emplace_back(entry.name, &entry);
  return *named(settings, "name", settings.text("name"), all);
}

bool has_parameters(const Encoding& encoding, const Source& source) {
  const auto& wanted = encoding.parameters();
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const Parameter& p) { return source.has(p.name); });
}

}  // namespace

PositionEncoding position_encoding_of(const Config& config, int64_t heads, int64_t head_dim) {
  const Config settings = config.child("position_encoding");
  const EncodingEntry& entry = entry_of(settings);
  PositionEncoding out{.name = entry.name, .fields = {}};
  const int64_t layers = config.integer("num_hidden_layers", 1, kMostLayers);
  for (const std::string& key : settings.keys()) {
    if (key == "name" || !settings.has(key)) continue;
    const auto field = std::find_if(entry.fields.begin(), entry.fields.end(),
                                    [&](const Field& f) { return f.name == key; });
    if (field == entry.fields.end())
      settings.reject(key, "is no field of " + entry.name + " (see locant list)");
    out.fields[key] = value_of(settings, *field);
    if (const auto* number = std::get_if<int64_t>(&out.fields[key]))
      check_distances(settings, key, *number, layers, int64_t{1} << 26);
  }
  for (const auto& [key, size] : {std::pair("heads", heads), std::pair("head_dim", head_dim)}) {
    const auto [field, missing] = out.fields.emplace(key, size);
    if (!missing && field->second != FieldValue(size))
      settings.reject(key, "is " + text_of(field->second) + ", but the model has " +
                               std::to_string(size));
  }
  return out;
}

std::vector<std::shared_ptr<const Encoding>> build_encodings(const PositionEncoding& position,
                                                             int64_t layers,
                                                             const Source& source) {
  std::vector<std::shared_ptr<const Encoding>> out;
  for (int64_t n = 0; n < layers; ++n) {
    const Source own = source.scope("encoding." + std::to_string(n) + ".");
    if (n > 0 && !has_parameters(*out.front(), own)) {
      out.push_back(out.front());
      continue;
    }
    std::shared_ptr<Encoding> encoding = make_encoding(position.name, position.fields);
    for (const Parameter& parameter : encoding->parameters())
      if (const ConstView values = own.copy(parameter.name, parameter.shape))
        encoding->set(parameter.name, values);
    out.push_back(encoding);
  }
  return out;
}

}  // namespace locant::inline v0
