#include "locant/models/source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace locant::inline v0 {
namespace {

bool all_float32(const Weights& weights) {
  const auto tensors = weights.tensors();
  return std::all_of(tensors.begin(), tensors.end(), [](const StoredTensor* tensor) {
    const auto type = tensor->view_dtype();
    return !type || !is_floating(*type) || (*type == DType::f32 && tensor->aligned());
  });
}

}  // namespace

Source::Source(Weights weights, bool dry, std::shared_ptr<ModelStorage> storage, bool in_place)
    : weights_(std::move(weights)), dry_(dry), storage_(std::move(storage)), in_place_(in_place) {}

Source::Source(Weights weights, bool dry, std::shared_ptr<ModelStorage> storage)
    : Source(weights, dry, std::move(storage), all_float32(weights)) {
  // Copies that were made of other types live as long as the files are held: then tables are copied
  // too, and everything else goes.
  if (in_place_ && !dry_) storage_->files = weights_.hold();
}

Source Source::scope(std::string_view prefix) const {
  return Source(weights_.scope(prefix), dry_, storage_, in_place_);
}

ConstView Source::get(std::string_view name, std::initializer_list<int64_t> shape) const {
  return get(name, std::span(shape.begin(), shape.size()));
}

ConstView Source::get(std::string_view name, std::span<const int64_t> shape) const {
  const ConstView found = weights_.get(name, shape);
  if (dry_) return {};
  if (storage_->counted.insert(found.data).second) storage_->parameters += found.size();
  return found;
}

ConstView Source::copy(std::string_view name, std::initializer_list<int64_t> shape) const {
  return copy(name, std::span(shape.begin(), shape.size()));
}

ConstView Source::copy(std::string_view name, std::span<const int64_t> shape) const {
  const ConstView found = get(name, shape);
  if (!found) return {};
  const View out = allocate(shape);
  std::copy_n(found.at<float>(), found.size(), out.at<float>());
  return out;
}

View Source::allocate(std::initializer_list<int64_t> shape) const {
  return allocate(std::span(shape.begin(), shape.size()));
}

View Source::allocate(std::span<const int64_t> shape) const {
  Tensor& tensor = storage_->tensors.emplace_back(DType::f32, shape);
  storage_->bytes += tensor.view().size() * static_cast<int64_t>(sizeof(float));
  return tensor.view();
}

ConstView Source::table(std::string_view name, int64_t rows, int64_t width) const {
  if (!in_place_) return copy(name, {rows, width});
  const ConstView found = get(name, {rows, width});
  if (found) storage_->bytes += found.size() * static_cast<int64_t>(sizeof(float));
  return found;
}

Linear Source::linear(std::string_view prefix, int64_t outputs, int64_t inputs, bool bias) const {
  const Source here = scope(prefix);
  const ConstView w = here.get("weight", {outputs, inputs});
  const ConstView b = bias ? here.get("bias", {outputs}) : ConstView{};
  return linear(std::span(&w, 1), std::span(&b, 1));
}

Linear Source::linear(std::span<const ConstView> weights,
                      std::span<const ConstView> biases) const {
  if (dry_) return {};
  Linear out(weights, biases);
  storage_->bytes += out.bytes();
  return out;
}

LayerNorm Source::norm(std::string_view prefix, int64_t width, double eps) const {
  const Source here = scope(prefix);
  return {.gamma = here.copy("weight", {width}),
          .beta = here.copy("bias", {width}),
          .eps = static_cast<float>(eps)};
}

RmsNorm Source::rms_norm(std::string_view prefix, int64_t width, double eps) const {
  return {.gamma = scope(prefix).copy("weight", {width}), .eps = static_cast<float>(eps)};
}

std::shared_ptr<ModelStorage> Source::finish(ModelInfo& info) const {
  info.parameters = storage_->parameters;
  info.bytes = storage_->bytes;
  info.pooling = storage_->pooling;
  storage_->counted.clear();
  return storage_;
}

void release_pages(const Weights& weights) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const StoredTensor* tensor : weights.tensors()) {
    const auto begin = reinterpret_cast<uintptr_t>(tensor->bytes.data());
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t last = (begin + tensor->bytes.size()) / page * page;
    // Pages of a read-only mapping: they hold what the file does, and are read again if need be.
    if (first < last)
      static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first,  // NOLINT
                                MADV_DONTNEED));
  }
}

}  // namespace locant::inline v0
