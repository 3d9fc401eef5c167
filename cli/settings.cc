#include "cli/settings.h"

#include <algorithm>

#include "locant/core/error.h"

namespace locant::cli {

void apply_settings(const EncodingEntry& entry, const std::vector<std::string>& settings,
                    FieldValues& fields) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    for (const Field& field : entry.fields)
      if (field.name == key)
        fields[key] = parse_field(entry.name, field, setting.substr(equals + 1));
  }
}

void require_known_settings(const char* scope, const std::vector<const EncodingEntry*>& entries,
                            const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    require(equals != std::string::npos, scope, "--set takes key=value, got '", setting, "'");
    const std::string key = setting.substr(0, equals);
    const bool known = std::any_of(entries.begin(), entries.end(), [&](const EncodingEntry* entry) {
      return std::any_of(entry->fields.begin(), entry->fields.end(),
                         [&](const Field& field) { return field.name == key; });
    });
    require(known, scope, "--set ", key, ": no chosen encoding has this field (see locant list)");
  }
}

}  // namespace locant::cli
