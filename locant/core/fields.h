// Fields: one description of a configuration struct, from which command-line flags, Python keyword
// arguments and JSON are made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/error.h"

namespace locant::inline v0 {

using FieldValue = std::variant<bool, int64_t, double, std::string, std::vector<double>>;
using FieldValues = std::map<std::string, FieldValue>;

// "16", "true", "hf", "1,2,4": what parse_field reads.
LOCANT_API std::string text_of(const FieldValue& value);

// "an integer", "true or false", ...: for messages.
LOCANT_API const char* type_name_of(const FieldValue& value);

// One member of a configuration: its word, its default and what it means.
struct Field {
  std::string name;
  FieldValue fallback;  // the default
  std::string doc;
  std::vector<std::string> choices;  // for strings; empty means any
};

// Converts `given` to the type of field.fallback (an integer serves as a number), or fails with the
// scope, the field and both types.
LOCANT_API FieldValue converted(std::string_view scope, const Field& field,
                                const FieldValue& given);

// Parses "16", "true", "hf", "1,2,4" as the type of field.fallback.
LOCANT_API FieldValue parse_field(std::string_view scope, const Field& field,
                                  const std::string& text);

// Binds fields to the members of a plain struct.
//   static const Fields<ShawConfig> fields{"shaw", {field("heads", &ShawConfig::heads, "query
//   heads"), ...}};
template <class Config>
struct BoundField {
  Field field;
  std::function<void(Config&, const FieldValue&)> store;
  std::function<FieldValue(const Config&)> load;
};

// field("heads", &ShawConfig::heads, "query heads"): the default is that of the struct.
template <class Config, class Member>
BoundField<Config> field(std::string name, Member Config::*member, std::string doc,
                         std::vector<std::string> choices = {}) {
  static_assert(std::is_constructible_v<FieldValue, Member>);
  return {
      Field{std::move(name), FieldValue(Config{}.*member), std::move(doc), std::move(choices)},
      [member](Config& config, const FieldValue& value) {
        config.*member = std::get<Member>(value);
      },
      [member](const Config& config) { return FieldValue(config.*member); },
  };
}

// All fields of a struct: describes them, makes one from values, and gives its values.
template <class Config>
class Fields {
 public:
  Fields(std::string scope, std::vector<BoundField<Config>> bound)
      : scope_(std::move(scope)), bound_(std::move(bound)) {}

  std::vector<Field> describe() const {
    std::vector<Field> out;
    for (const auto& item : bound_) out.push_back(item.field);
    return out;
  }

  Config parse(const FieldValues& values) const {
    Config config;
    for (const auto& [name, value] : values) {
      const BoundField<Config>& item = find(name);
      item.store(config, converted(scope_, item.field, value));
    }
    return config;
  }

  FieldValues dump(const Config& config) const {
    FieldValues out;
    for (const auto& item : bound_) out[item.field.name] = item.load(config);
    return out;
  }

 private:
  const BoundField<Config>& find(const std::string& name) const {
    for (const auto& item : bound_)
      if (item.field.name == name) return item;
    std::string known;
    for (const auto& item : bound_) known += (known.empty() ? "" : ", ") + item.field.name;
    fail(scope_, "unknown field '", name, "'; known: ", known);
  }

  std::string scope_;
  std::vector<BoundField<Config>> bound_;
};

}  // namespace locant::inline v0
