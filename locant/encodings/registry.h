// All encodings by name. Adding one = one folder and one line in registry.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/fields.h"
#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

// Everything that the command line, Python and the checks know of an encoding.
struct EncodingEntry {
  std::string name;        // "shaw": the word in C++, Python, JSON and on the command line
  std::string class_name;  // "Shaw": the Python class
  std::string summary;     // one line: formula or idea
  std::vector<Field> fields;
  std::function<std::unique_ptr<Encoding>(const FieldValues&)> make;
  std::vector<FieldValues> cases;  // configurations that conformance checks run
};

// All of them, in the order in which they are listed.
LOCANT_API const std::vector<EncodingEntry>& encodings();

// The one of that name, or an error that lists the known names.
LOCANT_API const EncodingEntry& find_encoding(const std::string& name);

// make_encoding("shaw", {{"heads", 12}, {"max_distance", 16}}); fields not given have their
// defaults. Parameters are not set: init() or set() comes next.
LOCANT_API std::unique_ptr<Encoding> make_encoding(const std::string& name,
                                                   const FieldValues& fields);

}  // namespace locant::inline v0
