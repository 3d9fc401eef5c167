// A .safetensors file: 8 bytes n (little-endian), a JSON header of n bytes, the data.
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, "__metadata__":
//   {...}}
// The file is mapped and never copied. Opening reads the header alone and checks all of it: offsets
// and sizes can be trusted afterwards. https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/tensor.h"
#include "locant/core/view.h"
#include "locant/io/file.h"

namespace locant::inline v0 {

// A tensor as it lies in a file.
struct LOCANT_API StoredTensor {
  std::string name;
  std::string dtype;  // in the file's word: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t elements() const;

  // The type of ours, if there is one: F32, F64, F16, BF16, BOOL and I64 have.
  std::optional<DType> view_dtype() const;

  // Whether the first element lies where its type may be read in place. Writers of the format see
  // to it, but the format does not demand it.
  bool aligned() const;

  // The tensor in place, in its own type. Fails by name for types without a DType, more than 4
  // axes, or data that is not aligned: copy() serves there.
  ConstView view() const;

  // A copy in the tensor's own type.
  Tensor copy() const;

  // A copy as float32: F16 and BF16 exactly, F64 rounded to nearest. Integers are refused by name.
  Tensor to_float32() const;
};

class LOCANT_API Safetensors {
 public:
  // Fails by the file's name, with the numbers, if anything in the header is wrong.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in order of their data
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Null if there is none of that name.
  const StoredTensor* find(std::string_view name) const;

 private:
  std::string path_;
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::unordered_map<std::string_view, size_t> by_name_;  // keys lie in tensors_
};

// Element types that the format names, with their sizes in bytes: {"F32", 4}, ...
LOCANT_API std::span<const std::pair<std::string_view, size_t>> stored_types();

}  // namespace locant::inline v0
