// The tensors of a checkpoint by name, over one or several files.
//   Weights weights = Weights::open(dir);
//   ConstView q = weights.scope("encoder.layer.0.attention.self.").get("query_proj.weight", {H,
//   H}); weights.require_complete();      // one message for everything that was missing or
//   mis-shaped
// Not for several threads at once; the views may be read by any number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/io/safetensors.h"

namespace locant::inline v0 {

// Copies and scopes share the files, the copies that were made, and the list of mistakes.
class LOCANT_API Weights {
 public:
  // model.safetensors, or the shards that model.safetensors.index.json names. Folders with weights
  // in other formats only are refused by name. Opening reads headers, no data.
  static Weights open(const std::string& dir);

  // The same names, each with `prefix` in front.
  Weights scope(std::string_view prefix) const;

  // The tensor as float32: in place if it is stored so and aligned, else a copy that lives as long
  // as any Weights or hold() of this folder. If it is missing, of another shape, or not of a
  // floating type, the result is an empty view and require_complete() will tell.
  // A name may be stored with the base model's prefix ("deberta.", "bert.", "roberta.", "mpnet.",
  // "transformer.", "model.") or without, and a norm's weight and bias as gamma and beta.
  ConstView get(std::string_view name, std::span<const int64_t> shape) const;
  ConstView get(std::string_view name, std::initializer_list<int64_t> shape) const;

  // The tensor as it is stored, null if missing. Counts as used.
  const StoredTensor* find(std::string_view name) const;
  bool has(std::string_view name) const;

  // Tensors whose name, without the scope, ends so are not unexpected: buffers such as
  // "position_ids" that older checkpoints hold.
  void ignore(std::string_view ending) const;

  // Fails with one message if any get() failed: it lists what is missing, what has another shape,
  // and, because a renamed tensor is both, what nobody asked for.
  void require_complete() const;

  // Names of tensors that nobody asked for, without those to ignore().
  std::vector<std::string> unexpected() const;

  // "name: 3 of 768" for floating tensors with NaN or infinities: reads all data.
  std::vector<std::string> not_finite() const;

  // All tensors, in order of their names.
  std::vector<const StoredTensor*> tensors() const;

  // Keeps mapped files and copies alive, for objects that keep views.
  std::shared_ptr<const void> hold() const { return set_; }

 private:
  struct Set;
  Weights(std::shared_ptr<Set> set, std::string prefix)
      : set_(std::move(set)), prefix_(std::move(prefix)) {}

  std::shared_ptr<Set> set_;
  std::string prefix_;
};

}  // namespace locant::inline v0
