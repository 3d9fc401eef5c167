#include "model.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "locant/models/model.h"

namespace locant::python {
namespace {

// A numpy array that owns the tensor; None if it is empty.
nb::object array_of(Tensor tensor) {
  if (!tensor) return nb::none();
  auto owned = std::make_unique<Tensor>(std::move(tensor));
  const View view = owned->view();
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  static_cast<void>(owned.release());
  const std::vector<size_t> shape(view.shape.begin(), view.shape.begin() + view.rank);
  return nb::cast(
      nb::ndarray<nb::numpy, float>(view.data, shape.size(), shape.data(), std::move(owner)));
}

// `flat` cut into sequences of `lengths`.
std::vector<std::vector<int64_t>> cut(const std::vector<int64_t>& flat,
                                      const std::vector<int64_t>& lengths) {
  std::vector<std::vector<int64_t>> out;
  auto at = flat.begin();
  for (const int64_t length : lengths) {
    out.emplace_back(at, at + length);
    at += length;
  }
  return out;
}

// Sequences that stand one after the other; none if `flat` is None.
std::vector<std::vector<int64_t>> decoder_sequences(nb::handle flat, nb::handle lengths) {
  if (flat.is_none()) return {};
  return cut(integers(flat, "decoder_input_ids"), integers(lengths, "decoder_lengths"));
}

// An array per sequence; none if there is no such entry.
std::vector<InputArray> arrays_of(const nb::dict& extras, const char* name, const Axes& axes) {
  std::vector<InputArray> out;
  if (extras.contains(name))
    for (const nb::handle array : nb::borrow<nb::list>(extras[name]))
      out.push_back(input_array(array, name, axes));
  return out;
}

std::vector<ConstView> views_of(const std::vector<InputArray>& arrays) {
  std::vector<ConstView> out;
  for (const InputArray& array : arrays) out.push_back(array.view);
  return out;
}

// extras: "mems", "perm_mask" and "target_mapping", a list of arrays each, "use_mems", and
// "attention_layer".
nb::dict run(const Model& model, nb::handle ids, nb::handle lengths_in, nb::handle token_types,
             nb::handle starts, nb::handle decoder_ids, nb::handle decoder_lengths, bool embed,
             bool normalize, const nb::dict& extras) {
  const std::vector<int64_t> lengths = integers(lengths_in, "lengths");
  ModelInput input;
  input.ids = cut(integers(ids, "input_ids"), lengths);
  if (!token_types.is_none())
    input.token_types = cut(integers(token_types, "token_type_ids"), lengths);
  input.starts = integers(starts, "starts");
  input.decoder_ids = decoder_sequences(decoder_ids, decoder_lengths);
  const auto mems = arrays_of(extras, "mems", {3, "(layers, M, D)"});
  const auto perm_masks = arrays_of(extras, "perm_mask", {2, "(L, L)"});
  const auto mappings = arrays_of(extras, "target_mapping", {2, "(T, L)"});
  input.mems = views_of(mems);
  input.perm_masks = views_of(perm_masks);
  input.target_mappings = views_of(mappings);
  input.use_mems = extras.contains("use_mems") && nb::cast<bool>(extras["use_mems"]);
  if (extras.contains("attention_layer"))
    input.attention_layer = nb::cast<int64_t>(extras["attention_layer"]);
  ModelOutput out;
  Tensor pooled;
  {
    const nb::gil_scoped_release release;
    out = model.run(input);
    if (embed) pooled = sentence_embeddings(out, model.info(), normalize);
  }
  nb::dict result;
  const auto add = [&](const char* name, Tensor tensor) {
    if (tensor) result[name] = array_of(std::move(tensor));
  };
  if (embed) {
    add("embeddings", std::move(pooled));
    return result;
  }
  add("last_hidden_state", std::move(out.last_hidden_state));
  add("pooler_output", std::move(out.pooler_output));
  add("logits", std::move(out.logits));
  add("start_logits", std::move(out.start_logits));
  add("end_logits", std::move(out.end_logits));
  const auto add_list = [&](const char* name, std::vector<Tensor>& tensors) {
    nb::list given;
    for (Tensor& tensor : tensors) given.append(array_of(std::move(tensor)));
    result[name] = std::move(given);
  };
  if (input.use_mems) add_list("mems", out.mems);
  if (input.attention_layer >= 0) add_list("attentions", out.attentions);
  return result;
}

// stream(sequence, token), or None; what it returns ends the sequence if it is False.
std::vector<std::vector<int64_t>> generate(const Model& model, nb::handle ids, nb::handle lengths,
                                           nb::handle decoder_ids, nb::handle decoder_lengths,
                                           int64_t max_new_tokens, double temperature, double top_p,
                                           uint64_t seed, nb::handle stop, nb::object stream,
                                           bool exact) {
  ModelInput input;
  input.ids = cut(integers(ids, "input_ids"), integers(lengths, "lengths"));
  input.decoder_ids = decoder_sequences(decoder_ids, decoder_lengths);
  GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.temperature = temperature;
  options.top_p = top_p;
  options.seed = seed;
  options.stop = integers(stop, "stop");
  options.exact = exact;
  if (!stream.is_none())
    options.on_token = [&](int64_t sequence, int64_t token) {
      const nb::gil_scoped_acquire acquire;
      return !stream(sequence, token).is(nb::bool_(false));
    };
  const nb::gil_scoped_release release;
  return model.generate(input, options);
}

nb::dict info_of(const Model& model) {
  const ModelInfo& info = model.info();
  nb::dict out;
  out["model_type"] = info.model_type;
  out["head"] = info.head;
  out["encoding"] = info.encoding;
  out["vocab_size"] = info.vocab_size;
  out["hidden_size"] = info.hidden_size;
  out["layers"] = info.layers;
  out["heads"] = info.heads;
  out["intermediate_size"] = info.intermediate_size;
  out["decoder_layers"] = info.decoder_layers;
  out["token_types"] = info.token_types;
  out["max_length"] = info.max_length == 0 ? nb::none() : nb::cast(info.max_length);
  out["parameters"] = info.parameters;
  out["bytes"] = info.bytes;
  out["enhanced_mask_decoder"] = info.enhanced_mask_decoder;
  out["per_token"] = info.per_token;
  out["labels"] = nb::cast(info.labels);
  out["pooling"] = nb::cast(info.pooling);
  out["takes"] = nb::cast(info.takes);
  return out;
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<Model>(module, "Model", "A loaded checkpoint.")
      .def("info", &info_of, "What the checkpoint is, by name.")
      .def("run", &run, nb::arg("ids"), nb::arg("lengths"), nb::arg("token_types").none(),
           nb::arg("starts").none(), nb::arg("decoder_ids").none(),
           nb::arg("decoder_lengths").none(), nb::arg("embed"), nb::arg("normalize"),
           nb::arg("extras"),
           "Runs sequences that stand one after the other; arrays by name, a row per token.")
      .def("generate", &generate, nb::arg("ids"), nb::arg("lengths"), nb::arg("decoder_ids").none(),
           nb::arg("decoder_lengths").none(), nb::arg("max_new_tokens"), nb::arg("temperature"),
           nb::arg("top_p"), nb::arg("seed"), nb::arg("stop").none(), nb::arg("stream").none(),
           nb::arg("exact"), "The new tokens of each sequence.");
  module.attr("NEVER_STOP") = kNeverStop;
  module.def(
      "load",
      [](const std::string& path, const std::string& head, const std::string& mask_decoder) {
        const nb::gil_scoped_release release;
        return std::const_pointer_cast<Model>(
            load(path, {.head = head, .mask_decoder = mask_decoder}));
      },
      nb::arg("path"), nb::arg("head"), nb::arg("mask_decoder"), "Loads a checkpoint's folder.");
}

}  // namespace locant::python
