// locant info: what a model's folder holds.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "locant/io/config.h"
#include "locant/io/file.h"
#include "locant/io/weights.h"
#include "locant/models/model.h"

namespace locant::cli {
namespace {

struct InfoFlags {
  std::string dir;
  bool tensors = false;
  bool sums = false;
  bool finite = false;
  bool model = false;
  bool json = false;
};

struct Totals {
  int64_t tensors = 0, parameters = 0, bytes = 0;
  std::map<std::string, int64_t> bytes_by_dtype;
};

Totals totals_of(const std::vector<const StoredTensor*>& tensors) {
  Totals out;
  for (const StoredTensor* tensor : tensors) {
    const auto bytes = static_cast<int64_t>(tensor->bytes.size());
    ++out.tensors;
    if (tensor->dtype[0] == 'F' || tensor->dtype == "BF16") out.parameters += tensor->elements();
    out.bytes += bytes;
    out.bytes_by_dtype[tensor->dtype] += bytes;
  }
  return out;
}

// FNV-1a of 64 bits: tells one tensor from another.
std::string sum_of(std::span<const std::byte> bytes) {
  uint64_t value = 0xcbf29ce484222325;
  for (const std::byte byte : bytes)
    value = (value ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

nlohmann::ordered_json json_of(const Weights& weights, const StoredTensor& tensor, bool sums) {
  nlohmann::ordered_json out = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
  if (!sums) return out;
  out["sum"] = sum_of(tensor.bytes);
  const ConstView view = weights.get(tensor.name, tensor.shape);
  if (view)
    out["float32_sum"] = sum_of(std::span(static_cast<const std::byte*>(view.data),
                                          static_cast<size_t>(view.size()) * sizeof(float)));
  return out;
}

nlohmann::ordered_json json_of(const ModelInfo& model) {
  nlohmann::ordered_json out = {
      {"head", model.head},
      {"encoding", model.encoding},
      {"layers", model.layers},
      {"heads", model.heads},
      {"hidden_size", model.hidden_size},
      {"vocab_size", model.vocab_size},
      {"max_length", nullptr},
      {"parameters", model.parameters},
      {"bytes", model.bytes},
      {"labels", model.labels},
      {"pooling", model.pooling},
  };
  if (model.max_length > 0) out["max_length"] = model.max_length;
  return out;
}

void print(const ModelInfo& model) {
  fmt::print("head          {}\nencoding      {}\n", model.head, model.encoding);
  fmt::print("layers        {} of {} heads, width {}\n", model.layers, model.heads,
             model.hidden_size);
  fmt::print("longest text  {}\n", model.max_length > 0 ? fmt::format("{} tokens", model.max_length)
                                                        : std::string("any"));
  fmt::print("in memory     {} parameters, {} bytes\n", model.parameters, model.bytes);
  if (model.head == "base") fmt::print("embeddings    {}\n", fmt::join(model.pooling, ", "));
  if (!model.labels.empty()) fmt::print("labels        {}\n", fmt::join(model.labels, ", "));
}

int info(const InfoFlags& flags) {
  require_folder("info", flags.dir);
  const Config config = Config::read(join_path(flags.dir, "config.json"));
  const Weights weights = Weights::open(flags.dir);
  const Totals totals = totals_of(weights.tensors());
  const std::string model_type = config.text_or("model_type", "");
  const std::vector<std::string> architectures =
      config.has("architectures") ? config.texts("architectures") : std::vector<std::string>();
  const std::vector<std::string> not_finite =
      flags.finite ? weights.not_finite() : std::vector<std::string>();

  const std::shared_ptr<const Model> model = flags.model ? load(flags.dir) : nullptr;

  if (flags.json) {
    nlohmann::ordered_json out = {
        {"model_type", model_type},  {"architectures", architectures},
        {"tensors", totals.tensors}, {"parameters", totals.parameters},
        {"bytes", totals.bytes},     {"bytes_by_dtype", totals.bytes_by_dtype}};
    if (model) out["model"] = json_of(model->info());
    if (flags.finite) out["not_finite"] = not_finite;
    if (flags.tensors || flags.sums)
      for (const StoredTensor* tensor : weights.tensors())
        out["list"][tensor->name] = json_of(weights, *tensor, flags.sums);
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return not_finite.empty() ? 0 : 1;
  }
  fmt::print(
      "architecture  {} ({})\n",
      architectures.empty() ? "not named" : fmt::format("{}", fmt::join(architectures, ", ")),
      model_type.empty() ? "no model_type" : model_type);
  fmt::print("tensors       {}\nparameters    {}\nbytes         {}\n", totals.tensors,
             totals.parameters, totals.bytes);
  for (const auto& [dtype, bytes] : totals.bytes_by_dtype) fmt::print("  {:<12}{}\n", dtype, bytes);
  if (model) print(model->info());
  if (flags.tensors || flags.sums)
    for (const StoredTensor* tensor : weights.tensors())
      fmt::print("{:<6}{:<20}{}{}\n", tensor->dtype, shape_text(tensor->shape), tensor->name,
                 flags.sums ? "  " + sum_of(tensor->bytes) : "");
  if (flags.finite && not_finite.empty()) fmt::print("all numbers are finite\n");
  for (const std::string& line : not_finite) fmt::print("not finite    {}\n", line);
  return not_finite.empty() ? 0 : 1;
}

}  // namespace

Command add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "info", "What a model's folder holds: architecture, tensors, parameters, bytes by type");
  auto flags = std::make_shared<InfoFlags>();
  command->add_option("dir", flags->dir, "Folder with config.json and model.safetensors")
      ->required();
  command->add_flag("--model", flags->model,
                    "Load the model: its head, encoding, longest text and memory");
  command->add_flag("--tensors", flags->tensors, "List every tensor");
  command->add_flag("--sums", flags->sums,
                    "List them with 64-bit FNV-1a sums of their bytes (JSON: as float32, too)");
  command->add_flag("--finite", flags->finite, "Look for NaN and infinities: reads all weights");
  command->add_flag("--json", flags->json, "For programs");
  return [flags] { return info(*flags); };
}

}  // namespace locant::cli
