#include "locant/io/config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "locant/core/error.h"
#include "locant/core/fields.h"
#include "locant/io/file.h"
#include "locant/io/json.h"

namespace locant::inline v0 {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{16} << 20;

std::string number_text(double value) {
  return text_of(FieldValue(value));
}

// "an integer from 1 to 8", "a number >= 0"
template <class Number>
std::string range_text(const char* kind, Number least, Number most) {
  const auto text = [](Number value) { return text_of(FieldValue(value)); };
  const bool low = least != std::numeric_limits<Number>::lowest();
  const bool high = most != std::numeric_limits<Number>::max();
  if (low && high) return kind + std::string(" from ") + text(least) + " to " + text(most);
  if (low) return kind + std::string(" >= ") + text(least);
  return high ? kind + std::string(" <= ") + text(most) : kind;
}

}  // namespace

struct Config::Node {
  std::shared_ptr<const json> document;  // keeps `object` alive
  const json* object = nullptr;
  std::string source;  // "dir/config.json"
  std::string prefix;  // "rope_scaling." in a child

  // Null if missing.
  const json* find(std::string_view key) const {
    const auto found = object->find(std::string(key));
    return found == object->end() || found->is_null() ? nullptr : &*found;
  }

  template <class... Parts>
  [[noreturn]] void reject(std::string_view key, const Parts&... why) const {
    fail("config", source, ": ", prefix, legible(key), ' ', why...);
  }

  const json& at(std::string_view key, const std::string& kind) const {
    const json* value = find(key);
    if (value == nullptr) reject(key, "is missing; it must be ", kind);
    return *value;
  }

  [[noreturn]] void mistake(std::string_view key, const std::string& kind, const json& got) const {
    std::string text;
    if (got.is_object() || got.is_array()) {
      text = got.is_object() ? "an object" : "a list";  // may be long
    } else if (got.is_string()) {
      text = shown(got.get_ref<const std::string&>());
    } else if (got.is_number_float()) {
      text = number_text(got.get<double>());
    } else {
      text = got.dump();
    }
    reject(key, "must be ", kind, ", got ", text);
  }

  double number_of(std::string_view key, const json& value, const std::string& kind, double least,
                   double most) const {
    if (!value.is_number()) mistake(key, kind, value);
    const double number = value.get<double>();
    // Written so that NaN would fail as well.
    if (!(number >= least && number <= most)) mistake(key, kind, value);
    return number;
  }
};

Config Config::read(const std::string& path) {
  return parse(read_file("config", path, kMostBytes), path);
}

Config Config::parse(std::string_view text, const std::string& source) {
  auto document = std::make_shared<const json>(parse_json_object("config", source, text));
  auto node = std::make_shared<Node>();
  node->object = document.get();
  node->document = std::move(document);
  node->source = source;
  return Config(std::move(node));
}

std::optional<Config> Config::beside(std::string_view name) const {
  const std::string path = (std::filesystem::path(node_->source).parent_path() / name).string();
  if (!is_file(path)) return std::nullopt;
  return read(path);
}

bool Config::has(std::string_view key) const {
  return node_->find(key) != nullptr;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> out;
  for (const auto& item : node_->object->items())
    if (!item.value().is_null()) out.push_back(item.key());
  return out;
}

int64_t Config::integer(std::string_view key, int64_t least, int64_t most) const {
  const std::string kind = range_text("an integer", least, most);
  const json& value = node_->at(key, kind);
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
    node_->mistake(key, kind, value);
  return value.get<int64_t>();
}

double Config::number(std::string_view key, double least, double most) const {
  const std::string kind = range_text("a number", least, most);
  return node_->number_of(key, node_->at(key, kind), kind, least, most);
}

bool Config::flag(std::string_view key) const {
  const json& value = node_->at(key, "true or false");
  if (!value.is_boolean()) node_->mistake(key, "true or false", value);
  return value.get<bool>();
}

std::string Config::text(std::string_view key) const {
  const json& value = node_->at(key, "a string");
  if (!value.is_string()) node_->mistake(key, "a string", value);
  return value.get<std::string>();
}

bool Config::is_text(std::string_view key) const {
  const json* value = node_->find(key);
  return value != nullptr && value->is_string();
}

bool Config::is_list(std::string_view key) const {
  const json* value = node_->find(key);
  return value != nullptr && value->is_array();
}

bool Config::is_null(std::string_view key) const {
  const auto found = node_->object->find(std::string(key));
  return found != node_->object->end() && found->is_null();
}

std::vector<std::string> Config::texts(std::string_view key) const {
  const json& value = node_->at(key, "a list of strings");
  if (!value.is_array()) node_->mistake(key, "a list of strings", value);
  std::vector<std::string> out;
  for (const json& item : value) {
    if (!item.is_string()) node_->mistake(key, "a list of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<double> Config::numbers(std::string_view key) const {
  const std::string kind = "a list of numbers";
  const json& value = node_->at(key, kind);
  if (!value.is_array()) node_->mistake(key, kind, value);
  std::vector<double> out;
  for (const json& item : value)
    out.push_back(node_->number_of(key, item, kind, std::numeric_limits<double>::lowest(),
                                   std::numeric_limits<double>::max()));
  return out;
}

std::vector<bool> Config::flags(std::string_view key) const {
  const std::string kind = "a list of true and false";
  const json& value = node_->at(key, kind);
  if (!value.is_array()) node_->mistake(key, kind, value);
  std::vector<bool> out;
  for (const json& item : value) {
    if (!item.is_boolean()) node_->mistake(key, kind, item);
    out.push_back(item.get<bool>());
  }
  return out;
}

Config Config::child(std::string_view key) const {
  const json& value = node_->at(key, "an object");
  if (!value.is_object()) node_->mistake(key, "an object", value);
  auto node = std::make_shared<Node>(*node_);
  node->object = &value;
  node->prefix.append(legible(key)).push_back('.');
  return Config(std::move(node));
}

std::vector<Config> Config::children(std::string_view key) const {
  const std::string kind = "a list of objects";
  const json& value = node_->at(key, kind);
  if (!value.is_array()) node_->mistake(key, kind, value);
  std::vector<Config> out;
  for (size_t n = 0; n < value.size(); ++n) {
    if (!value[n].is_object()) node_->mistake(key, kind, value[n]);
    auto node = std::make_shared<Node>(*node_);
    node->object = &value[n];
    node->prefix.append(key).append("[").append(std::to_string(n)).append("].");
    out.push_back(Config(std::move(node)));
  }
  return out;
}

Config Config::items(std::string_view key) const {
  const json& value = node_->at(key, "a list");
  if (!value.is_array()) node_->mistake(key, "a list", value);
  json object = json::object();
  for (size_t n = 0; n < value.size(); ++n) object[std::to_string(n)] = value[n];
  auto node = std::make_shared<Node>(*node_);
  node->document = std::make_shared<const json>(std::move(object));
  node->object = node->document.get();
  node->prefix.append(legible(key)).push_back('.');
  return Config(std::move(node));
}

std::string Config::choice(std::string_view key, const std::vector<std::string>& choices) const {
  std::string value = text(key);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string known;
  for (const std::string& choice : choices) known += (known.empty() ? "" : ", ") + choice;
  node_->reject(key, "must be one of ", known, ", got ", shown(value));
}

int64_t Config::integer_or(std::string_view key, int64_t fallback, int64_t least,
                           int64_t most) const {
  return has(key) ? integer(key, least, most) : fallback;
}

double Config::number_or(std::string_view key, double fallback, double least, double most) const {
  return has(key) ? number(key, least, most) : fallback;
}

bool Config::flag_or(std::string_view key, bool fallback) const {
  return has(key) ? flag(key) : fallback;
}

std::string Config::text_or(std::string_view key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

void Config::reject(std::string_view key, const std::string& why) const {
  node_->reject(key, why);
}

}  // namespace locant::inline v0
