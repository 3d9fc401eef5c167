// Weights on their way into a model. A model is built twice by the same code: first dry, when
// nothing is packed and only names and shapes are asked for, so that one message can list all
// mistakes; then for good.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "locant/core/tensor.h"
#include "locant/io/weights.h"
#include "locant/layers/linear.h"
#include "locant/layers/norm.h"
#include "locant/models/model.h"

namespace locant::inline v0 {

// What a model keeps of its checkpoint.
struct ModelStorage {
  std::deque<Tensor> tensors;
  std::shared_ptr<const void> files;  // mapped, if tables are read in place
  std::set<const void*> counted;      // tensors that `parameters` has in it
  int64_t parameters = 0, bytes = 0;
  std::vector<std::string> pooling;  // ModelInfo's
};

class Source {
 public:
  Source(Weights weights, bool dry, std::shared_ptr<ModelStorage> storage);

  Source scope(std::string_view prefix) const;
  bool dry() const { return dry_; }
  bool has(std::string_view name) const { return weights_.has(name); }

  // y = x·Wᵀ + b from prefix + "weight" and "bias".
  Linear linear(std::string_view prefix, int64_t outputs, int64_t inputs, bool bias = true) const;

  // Several of them side by side; views of what get() gave.
  Linear linear(std::span<const ConstView> weights, std::span<const ConstView> biases) const;

  LayerNorm norm(std::string_view prefix, int64_t width, double eps) const;

  // Of prefix + "weight" alone.
  RmsNorm rms_norm(std::string_view prefix, int64_t width, double eps) const;

  // A matrix that is read by rows: in place in the mapped file if it is stored as float32.
  ConstView table(std::string_view name, int64_t rows, int64_t width) const;

  // The tensor for as long as the model is being built; empty if it is missing or this is dry.
  ConstView get(std::string_view name, std::initializer_list<int64_t> shape) const;
  ConstView get(std::string_view name, std::span<const int64_t> shape) const;

  // A vector or small matrix, copied.
  ConstView copy(std::string_view name, std::initializer_list<int64_t> shape) const;
  ConstView copy(std::string_view name, std::span<const int64_t> shape) const;

  // Memory of the model.
  View allocate(std::initializer_list<int64_t> shape) const;
  View allocate(std::span<const int64_t> shape) const;

  // What the model must hold from now on; its sizes go into `info`.
  std::shared_ptr<ModelStorage> finish(ModelInfo& info) const;

 private:
  Source(Weights weights, bool dry, std::shared_ptr<ModelStorage> storage, bool in_place);

  Weights weights_;
  bool dry_;
  std::shared_ptr<ModelStorage> storage_;
  bool in_place_;  // everything is stored as float32
};

// Gives the pages of a checkpoint's mapped files back to the system: weights are packed by now, and
// rows of tables come back when they are looked at.
void release_pages(const Weights& weights);

}  // namespace locant::inline v0
