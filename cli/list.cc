// locant list: what the registry knows.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "cli/commands.h"
#include "locant/encodings/registry.h"

namespace locant::cli {
namespace {

nlohmann::ordered_json json_of(const FieldValue& value) {
  return std::visit([](const auto& x) { return nlohmann::ordered_json(x); }, value);
}

const char* type_of(const FieldValue& value) {
  constexpr std::array names = {"bool", "int", "float", "string", "list"};
  static_assert(std::variant_size_v<FieldValue> == names.size());
  return names[value.index()];
}

nlohmann::ordered_json json_of(const EncodingEntry& entry) {
  nlohmann::ordered_json out = {
      {"name", entry.name}, {"class", entry.class_name}, {"summary", entry.summary}};
  out["fields"] = nlohmann::ordered_json::array();
  for (const Field& field : entry.fields) {
    nlohmann::ordered_json item = {{"name", field.name},
                                   {"type", type_of(field.fallback)},
                                   {"default", json_of(field.fallback)},
                                   {"doc", field.doc}};
    if (!field.choices.empty()) item["choices"] = field.choices;
    out["fields"].push_back(item);
  }
  out["parameters"] = nlohmann::ordered_json::array();
  const std::unique_ptr<Encoding> encoding = entry.make({});
  for (const Parameter& parameter : encoding->parameters())
    out["parameters"].push_back({{"name", parameter.name},
                                 {"shape", parameter.shape_in_words},
                                 {"default_shape", parameter.shape},
                                 {"init_std", parameter.init_std},
                                 {"doc", parameter.doc}});
  return out;
}

void print(const EncodingEntry& entry) {
  fmt::print("{}: {}\n", entry.name, entry.summary);
  fmt::print("  fields\n");
  for (const Field& field : entry.fields) {
    const std::string kind = field.choices.empty()
                                 ? type_of(field.fallback)
                                 : fmt::format("{}", fmt::join(field.choices, "|"));
    fmt::print("    {:<24}{:<10} = {:<8} {}\n", field.name, kind, text_of(field.fallback),
               field.doc);
  }
  const std::unique_ptr<Encoding> encoding = entry.make({});
  if (!encoding->parameters().empty()) fmt::print("  parameters\n");
  for (const Parameter& parameter : encoding->parameters())
    fmt::print("    {:<24}({}) {}\n", parameter.name, parameter.shape_in_words, parameter.doc);
  fmt::print("\n");
}

int list(bool as_json) {
  if (as_json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const EncodingEntry& entry : encodings()) out.push_back(json_of(entry));
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  for (const EncodingEntry& entry : encodings()) print(entry);
  return 0;
}

}  // namespace

Command add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "Encodings, their fields and their parameters");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "For programs");
  return [as_json] { return list(*as_json); };
}

}  // namespace locant::cli
