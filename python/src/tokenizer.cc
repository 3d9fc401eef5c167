#include "tokenizer.h"

#ifdef LOCANT_WITH_TEXT
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "locant/core/error.h"
#include "locant/text/tokenizer.h"
#endif

namespace locant::python {

#ifdef LOCANT_WITH_TEXT
namespace {

namespace nb = nanobind;
using Texts = std::vector<std::string>;
using Ids = std::vector<std::vector<int64_t>>;

// Ids and token types of each text, or of each pair.
std::pair<Ids, Ids> encode(const Tokenizer& tokenizer, const Texts& texts,
                           const std::optional<Texts>& pairs, int64_t max_length) {
  require(!pairs || pairs->size() == texts.size(), "tokenizer", "there are ", texts.size(),
          " texts but ", pairs ? pairs->size() : 0, " pairs");
  std::pair<Ids, Ids> out;
  const nb::gil_scoped_release release;
  for (size_t n = 0; n < texts.size(); ++n) {
    const EncodeOptions options = {.max_length = max_length};
    Encoded encoded = pairs ? tokenizer.encode(texts[n], (*pairs)[n], options)
                            : tokenizer.encode(texts[n], options);
    out.first.push_back(std::move(encoded.ids));
    out.second.push_back(std::move(encoded.token_type_ids));
  }
  return out;
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "Tokenizer", "Text to the token ids of a model.")
      .def("encode", &encode, nb::arg("texts"), nb::arg("pairs").none(), nb::arg("max_length"),
           "Ids and token types of texts or pairs, cut to max_length tokens unless that is 0.");
  module.def(
      "load_tokenizer",
      [](const std::string& path) { return std::shared_ptr<Tokenizer>(load_tokenizer(path)); },
      nb::arg("path"), "The tokenizer of a checkpoint's folder.");
}
#else
void bind_tokenizer(nanobind::module_&) {}
#endif

}  // namespace locant::python
