// All encodings by name. Adding one = one folder and one line in registry.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "locant/core/fields.h"
#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct EncodingEntry {
  std::string name;        // "shaw": the word in C++, Python, JSON and on the command line
  std::string class_name;  // "Shaw": the Python class
  std::string summary;     // one line: formula or idea
  std::vector<Field> fields;
  std::function<std::unique_ptr<Encoding>(const FieldValues&)> make;
  std::vector<FieldValues> cases;  // configurations that conformance checks run
};

const std::vector<EncodingEntry>& encodings();
const EncodingEntry& find_encoding(const std::string& name);  // or fails, listing the known names
std::unique_ptr<Encoding> make_encoding(const std::string& name, const FieldValues& fields);

}  // namespace locant::inline v0
