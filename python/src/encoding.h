// Encodings for Python: made by registry name; parameters are views of the arrays given.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "arrays.h"
#include "locant/encodings/encoding.h"

namespace locant::python {

class BoundEncoding {
 public:
  BoundEncoding(const std::string& name, nb::dict fields, uint64_t seed);

  const Encoding& encoding() const { return *encoding_; }
  const std::string& name() const { return encoding_->name(); }
  nb::dict fields() const;
  nb::list parameters() const;  // dicts: name, shape, shape_in_words, init_std, doc

  void set(const std::string& name, nb::handle values);
  void project(int64_t first_offset, int64_t last_offset);
  nb::object copy(const std::string& name) const;  // the parameter's values, as a new float64 array

 private:
  std::unique_ptr<Encoding> encoding_;
  std::map<std::string, InputArray> arrays_;  // what the encoding's views point into
};

void bind_encoding(nb::module_& module);

}  // namespace locant::python
