#include "encoding.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "locant/core/fields.h"
#include "locant/encodings/registry.h"

namespace locant::python {
namespace {

FieldValue to_field(const std::string& scope, const std::string& name, nb::handle value) {
  PyObject* object = value.ptr();
  if (PyBool_Check(object)) return object == Py_True;
  if (PyIndex_Check(object)) {
    const Py_ssize_t number = PyNumber_AsSsize_t(object, PyExc_ValueError);
    if (number == -1 && PyErr_Occurred()) nb::raise_python_error();
    return static_cast<int64_t>(number);
  }
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  std::vector<double> numbers;
  if (!nb::try_cast(value, numbers))
    fail(scope, name, " must be a bool, a number, a string or a list of numbers, got ",
         nb::type_name(value.type()).c_str());
  return numbers;
}

nb::object from_field(const FieldValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}

nb::dict from_fields(const FieldValues& values) {
  nb::dict out;
  for (const auto& [name, value] : values) out[name.c_str()] = from_field(value);
  return out;
}

nb::list describe(const std::vector<Parameter>& parameters) {
  nb::list out;
  for (const Parameter& parameter : parameters) {
    nb::dict item;
    item["name"] = parameter.name;
    item["shape"] = nb::tuple(nb::cast(parameter.shape));
    item["shape_in_words"] = parameter.shape_in_words;
    item["init_std"] = parameter.init_std;
    item["doc"] = parameter.doc;
    out.append(item);
  }
  return out;
}

// Every encoding: dicts of name, class_name, summary, fields (name, default, doc, choices) and the
// configurations that conformance checks run.
nb::list registry() {
  nb::list out;
  for (const EncodingEntry& entry : encodings()) {
    nb::list fields;
    for (const Field& field : entry.fields) {
      nb::dict item;
      item["name"] = field.name;
      item["default"] = from_field(field.fallback);
      item["doc"] = field.doc;
      item["choices"] = nb::cast(field.choices);
      fields.append(item);
    }
    nb::list cases;
    for (const FieldValues& values : entry.cases) cases.append(from_fields(values));
    nb::dict item;
    item["name"] = entry.name;
    item["class_name"] = entry.class_name;
    item["summary"] = entry.summary;
    item["fields"] = fields;
    item["cases"] = cases;
    out.append(item);
  }
  return out;
}

}  // namespace

BoundEncoding::BoundEncoding(const std::string& name, nb::dict fields, uint64_t seed) {
  FieldValues values;
  for (const auto& [key, value] : fields) {
    const std::string field = nb::cast<std::string>(key);
    values[field] = to_field(name, field, value);
  }
  encoding_ = make_encoding(name, values);
  encoding_->init(seed);
}

nb::dict BoundEncoding::fields() const {
  return from_fields(encoding_->fields());
}

nb::list BoundEncoding::parameters() const {
  return describe(encoding_->parameters());
}

void BoundEncoding::set(const std::string& name, nb::handle values) {
  InputArray array = input_array(values, name);
  encoding_->set(name, array.view);
  arrays_[name] = std::move(array);
}

void BoundEncoding::project(int64_t first_offset, int64_t last_offset) {
  encoding_->project(first_offset, last_offset);
}

nb::object BoundEncoding::copy(const std::string& name) const {
  const ConstView view = encoding_->parameter(name);
  std::vector<double> values;
  values.reserve(view.size());
  for (int64_t a = 0; a < view.shape[0]; ++a)
    for (int64_t b = 0; b < view.shape[1]; ++b)
      for (int64_t c = 0; c < view.shape[2]; ++c)
        for (int64_t e = 0; e < view.shape[3]; ++e) values.push_back(element(view, a, b, c, e));
  return numpy_array(std::move(values), std::span(view.shape.data(), view.rank));
}

void bind_encoding(nb::module_& module) {
  nb::class_<BoundEncoding>(module, "Encoding",
                            "An encoding of the registry and the arrays that it views.")
      .def(nb::init<const std::string&, nb::dict, uint64_t>(), nb::arg("name"), nb::arg("fields"),
           nb::arg("seed"))
      .def_prop_ro("name", &BoundEncoding::name, "Its word in the registry.")
      .def("fields", &BoundEncoding::fields, "The values of all fields, by name.")
      .def("parameters", &BoundEncoding::parameters, "Dicts: name, shape, shape_in_words, init_std, doc.")
      .def("set", &BoundEncoding::set, nb::arg("name"), nb::arg("values"),
           "Uses an array as a parameter, without a copy.")
      .def("project", &BoundEncoding::project, nb::arg("first_offset"), nb::arg("last_offset"),
           nb::call_guard<nb::gil_scoped_release>(),
           "Computes once what depends on weights alone, for a range of offsets.")
      .def("copy", &BoundEncoding::copy, nb::arg("name"),
           "A parameter's values as a new float64 array.");
  module.def("registry", &registry, "Every encoding: name, class_name, summary, fields and cases.");
}

}  // namespace locant::python
