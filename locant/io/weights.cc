#include "locant/io/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/json.h"

namespace locant::inline v0 {
namespace {

using nlohmann::json;

constexpr const char* kScope = "weights";
constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kMostIndexBytes = size_t{100} << 20;
constexpr std::array<std::string_view, 6> kBasePrefixes = {"deberta.", "bert.", "roberta.",
                                                           "mpnet.", "transformer.", "model."};
// Files that hold weights in formats that are not read.
constexpr std::array<std::string_view, 6> kOtherFormats = {
    "pytorch_model.bin", "pytorch_model.bin.index.json",
    "tf_model.h5",       "flax_model.msgpack",
    "model.onnx",        "model.ckpt.index"};

// "a, b, c and 4 more", each in quotes
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string out;
  for (size_t n = 0; n < std::min(names.size(), kMost); ++n) out += (n == 0 ? "" : ", ") + names[n];
  if (names.size() > kMost) out += " and " + std::to_string(names.size() - kMost) + " more";
  return out;
}

// A shard is a file beside its index: a name that leads elsewhere is an attack or a mistake.
void require_plain_name(const std::string& index, const std::string& name) {
  require(!name.empty() && name != "." && name != ".." &&
              name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos,
          kScope, index, ": the shard ", shown(name), " is not the plain name of a file beside it");
}

[[noreturn]] void fail_without_safetensors(const std::string& dir) {
  for (const std::string_view name : kOtherFormats)
    require(!is_file(join_path(dir, name)), kScope, dir, ": has ", name, " but no ", kWhole,
            "; convert it once in Python: AutoModel.from_pretrained(\"", dir,
            "\").save_pretrained(\"", dir, "\"), with the model's own Auto class");
  fail(kScope, dir, ": has neither ", kWhole, " nor ", kIndex);
}

}  // namespace

struct Weights::Set {
  std::string dir;
  std::vector<std::unique_ptr<Safetensors>> files;
  std::map<std::string_view, const StoredTensor*> by_name;  // keys lie in the files' tensors
  std::string base;                                         // "deberta.", or empty
  std::set<const StoredTensor*> used;
  std::map<const StoredTensor*, Tensor> copies;
  std::vector<std::string> ignored, missing, mistakes;

  void open_one(const std::string& path) {
    files.push_back(std::make_unique<Safetensors>(path));
    for (const StoredTensor& tensor : files.back()->tensors()) by_name[tensor.name] = &tensor;
  }

  void open_shards(const std::string& path) {
    const json index = parse_json_object(kScope, path, read_file(kScope, path, kMostIndexBytes));
    const auto map = index.find("weight_map");
    require(map != index.end() && map->is_object(), kScope, path,
            ": weight_map must be an object of tensor and file names");
    std::map<std::string, const Safetensors*> shards;
    for (const auto& item : map->items()) {
      require(item.value().is_string(), kScope, path, ": the file of tensor ", shown(item.key()),
              " must be a string");
      const std::string file = item.value().get<std::string>();
      require_plain_name(path, file);
      if (!shards.contains(file)) {
        const std::string shard = join_path(dir, file);
        require(is_file(shard), kScope, path, ": the shard ", shown(file),
                " is missing; download it again");
        files.push_back(std::make_unique<Safetensors>(shard));
        shards[file] = files.back().get();
      }
      const StoredTensor* tensor = shards[file]->find(item.key());
      require(tensor != nullptr, kScope, path, ": tensor ", shown(item.key()), " is said to be in ",
              shown(file), " but is not");
      by_name[tensor->name] = tensor;
    }
  }

  // Of the known prefixes the one that most names carry, if any does.
  void find_base() {
    size_t most = 0;
    for (const std::string_view prefix : kBasePrefixes) {
      const size_t count =
          static_cast<size_t>(std::count_if(by_name.begin(), by_name.end(), [&](const auto& x) {
            return x.first.starts_with(prefix);
          }));
      if (count > most) {
        most = count;
        base = prefix;
      }
    }
  }

  const StoredTensor* exact(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }

  // By its name, or that with the base prefix, or that without the base prefix.
  const StoredTensor* with_base(const std::string& name) const {
    if (const StoredTensor* tensor = exact(name)) return tensor;
    if (!base.empty())
      if (const StoredTensor* tensor = exact(base + name)) return tensor;
    for (const std::string_view prefix : kBasePrefixes)
      if (name.starts_with(prefix))
        if (const StoredTensor* tensor = exact(name.substr(prefix.size()))) return tensor;
    return nullptr;
  }

  const StoredTensor* find(const std::string& name) const {
    if (const StoredTensor* tensor = with_base(name)) return tensor;
    // Checkpoints that came from TensorFlow.
    const auto renamed = [&](std::string_view now, std::string_view then) -> const StoredTensor* {
      if (!name.ends_with(now)) return nullptr;
      return with_base(name.substr(0, name.size() - now.size()).append(then));
    };
    if (const StoredTensor* tensor = renamed("Norm.weight", "Norm.gamma")) return tensor;
    return renamed("Norm.bias", "Norm.beta");
  }

  ConstView as_float32(const StoredTensor& tensor) {
    if (tensor.dtype == "F32" && tensor.aligned()) return tensor.view();
    auto found = copies.find(&tensor);
    if (found == copies.end()) found = copies.emplace(&tensor, tensor.to_float32()).first;
    return std::as_const(found->second).view();
  }
};

Weights Weights::open(const std::string& dir) {
  require_folder(kScope, dir);
  auto set = std::make_shared<Set>();
  set->dir = dir;
  const std::string whole = join_path(dir, kWhole), index = join_path(dir, kIndex);
  if (is_file(whole)) {
    set->open_one(whole);
  } else if (is_file(index)) {
    set->open_shards(index);
  } else {
    // A link into the void, a loop of links or a folder of that name has a reason of its own.
    std::error_code ignored;
    if (std::filesystem::symlink_status(whole, ignored).type() !=
        std::filesystem::file_type::not_found)
      set->open_one(whole);
    fail_without_safetensors(dir);
  }
  set->find_base();
  return Weights(std::move(set), "");
}

Weights Weights::scope(std::string_view prefix) const {
  return Weights(set_, prefix_ + std::string(prefix));
}

ConstView Weights::get(std::string_view name, std::span<const int64_t> shape) const {
  const std::string full = prefix_ + std::string(name);
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) {
    set_->missing.push_back(full + " " + shape_text(shape));
    return {};
  }
  const std::optional<DType> type = tensor->view_dtype();
  if (!std::ranges::equal(tensor->shape, shape)) {
    set_->mistakes.push_back(full + " is " + shape_text(tensor->shape) + ", not " +
                             shape_text(shape));
    return {};
  }
  if (!type || !is_floating(*type)) {
    set_->mistakes.push_back(full + " is of " + tensor->dtype + ", not of a floating type");
    return {};
  }
  return set_->as_float32(*tensor);
}

ConstView Weights::get(std::string_view name, std::initializer_list<int64_t> shape) const {
  return get(name, std::span(shape.begin(), shape.size()));
}

const StoredTensor* Weights::find(std::string_view name) const {
  const StoredTensor* tensor = set_->find(prefix_ + std::string(name));
  if (tensor != nullptr) set_->used.insert(tensor);
  return tensor;
}

bool Weights::has(std::string_view name) const {
  return set_->find(prefix_ + std::string(name)) != nullptr;
}

void Weights::ignore(std::string_view ending) const {
  set_->ignored.emplace_back(ending);
}

void Weights::require_complete() const {
  if (set_->missing.empty() && set_->mistakes.empty()) return;
  std::string text = ": the checkpoint does not fit its config.json.";
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty())
      text += " " + std::to_string(names.size()) + " " + what + ": " + listed(names) + ".";
  };
  add("missing", set_->missing);
  add("mis-shaped", set_->mistakes);
  add("unexpected", unexpected());
  fail(kScope, set_->dir, text);
}

std::vector<std::string> Weights::unexpected() const {
  std::vector<std::string> out;
  for (const auto& item : set_->by_name) {
    const std::string_view name = item.first;
    const bool ignored = std::any_of(set_->ignored.begin(), set_->ignored.end(),
                                     [&](const auto& ending) { return name.ends_with(ending); });
    if (!ignored && !set_->used.contains(item.second)) out.emplace_back(name);
  }
  return out;
}

std::vector<std::string> Weights::not_finite() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : set_->by_name) {
    const std::optional<DType> type = tensor->view_dtype();
    if (!type || !is_floating(*type) || tensor->shape.size() > 4) continue;
    const std::optional<Tensor> copy =
        tensor->aligned() ? std::nullopt : std::optional(tensor->copy());
    const ConstView view = copy ? copy->view() : tensor->view();
    // Contiguous, so one axis serves; in the tensor's own type, where a large F64 is finite.
    const int64_t size = view.size();
    const ConstView flat(view.data, view.dtype, std::span(&size, 1));
    int64_t count = 0;
    for (int64_t n = 0; n < size; ++n) count += !std::isfinite(element(flat, n));
    if (count > 0)
      out.push_back(std::string(name) + ": " + std::to_string(count) + " of " +
                    std::to_string(size));
  }
  return out;
}

std::vector<const StoredTensor*> Weights::tensors() const {
  std::vector<const StoredTensor*> out;
  for (const auto& [_, tensor] : set_->by_name) out.push_back(tensor);
  return out;
}

}  // namespace locant::inline v0
