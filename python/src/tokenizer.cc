#include "tokenizer.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "locant/text/text_stream.h"

#ifdef LOCANT_WITH_TEXT
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>

#include "locant/core/error.h"
#include "locant/text/tokenizer.h"
#endif

namespace locant::python {

namespace nb = nanobind;

namespace {

// With a Python function as decoder: Hugging Face's tokenizers serve as well.
void bind_text_stream(nb::module_& module) {
  using Decode = std::function<std::string(const std::vector<int64_t>&)>;
  nb::class_<TextStream>(module, "TextStream", "Text from tokens that come one by one.")
      .def(
          "__init__",
          [](TextStream* self, Decode decode, std::vector<int64_t> before) {
            new (self) TextStream(
                [decode = std::move(decode)](std::span<const int64_t> ids) {
                  return decode({ids.begin(), ids.end()});
                },
                std::move(before));
          },
          nb::arg("decode"), nb::arg("before"))
      .def("add", &TextStream::add, nb::arg("token"), "What of the text is certain by now and new.")
      .def("end", &TextStream::end, "What is left when no more tokens come.");
}

}  // namespace

#ifdef LOCANT_WITH_TEXT
namespace {

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
  bind_text_stream(module);
  nb::class_<Tokenizer>(module, "Tokenizer", "Text to the token ids of a model.")
      .def("encode", &encode, nb::arg("texts"), nb::arg("pairs").none(), nb::arg("max_length"),
           "Ids and token types of texts or pairs, cut to max_length tokens unless that is 0.")
      .def(
          "decode",
          [](const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
            return tokenizer.decode_output(ids);
          },
          nb::arg("ids"), "The text of a sequence, without special tokens.");
  module.def(
      "load_tokenizer",
      [](const std::string& path) { return std::shared_ptr<Tokenizer>(load_tokenizer(path)); },
      nb::arg("path"), "The tokenizer of a checkpoint's folder.");
}
#else
void bind_tokenizer(nb::module_& module) {
  bind_text_stream(module);
}
#endif

}  // namespace locant::python
