// A checkpoint for a config.json, without knowing the family: what load() lists as missing, by name
// and shape, is made up until nothing is missing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "locant/models/model.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_folder.h"

namespace locant {

class MadeUpCheckpoint {
 public:
  static constexpr int64_t kMostNumbers = 1 << 16;  // configs that ask for more get no model

  // `complaint_of` runs an action and gives the message of its std::invalid_argument: message_of.
  using ComplaintOf = std::function<std::string(const std::function<void()>&)>;

  // The model of the folder's config.json, or null: `complaint` says why.
  static std::shared_ptr<const Model> load_from(const TemporaryFolder& folder,
                                                const ComplaintOf& complaint_of,
                                                std::string* complaint = nullptr) {
    constexpr int kMostRounds = 12;  // a message lists 20 tensors
    MadeUpCheckpoint checkpoint;
    std::shared_ptr<const Model> model;
    for (int round = 0; round < kMostRounds && model == nullptr; ++round) {
      folder.write("model.safetensors", checkpoint.file());
      const std::string message = complaint_of([&] { model = load(folder.path()); });
      if (complaint != nullptr) *complaint = message;
      if (model == nullptr && !checkpoint.add(message)) break;
    }
    return model;
  }

 private:
  struct Tensor {
    std::string shape;  // "3,4"
    int64_t size = 1;
  };

  // Adds the "name (3, 4)" of a message's list; false if there is none, or too much.
  bool add(const std::string& message) {
    constexpr std::string_view kList = " missing: ";
    const size_t list = message.find(kList);
    if (list == message.npos || message.find(" mis-shaped: ") != message.npos) return false;
    const size_t before = tensors_.size();
    for (size_t at = list + kList.size();;) {
      const size_t open = message.find(" (", at), close = message.find(')', at);
      if (open == message.npos || close == message.npos || open > close) break;
      Tensor tensor;
      for (size_t digit = open + 2; digit < close;) {
        char* end = nullptr;
        const int64_t extent = std::strtoll(message.c_str() + digit, &end, 10);
        if (extent > kMostNumbers || tensor.size * extent > kMostNumbers) return false;
        tensor.size *= extent;
        tensor.shape.append(tensor.shape.empty() ? "" : ",").append(std::to_string(extent));
        digit = static_cast<size_t>(end - message.c_str()) + 2;  // behind ", " or beyond ")"
      }
      tensors_[message.substr(at, open - at)] = tensor;
      if (message.compare(close + 1, 2, ", ") != 0) break;
      at = close + 3;
    }
    int64_t total = 0;
    for (const auto& [_, tensor] : tensors_) total += tensor.size;
    return tensors_.size() > before && total <= kMostNumbers;
  }

  // Numbers between -0.5 and 0.5.
  std::string file() const {
    std::string header, data;
    uint32_t state = 1;
    for (const auto& [name, tensor] : tensors_) {
      const size_t begin = data.size();
      for (int64_t n = 0; n < tensor.size; ++n) {
        state = state * 1664525u + 1013904223u;
        const float value = static_cast<float>(state >> 16) / 65536.0f - 0.5f;
        data += bytes_of(std::span(&value, 1));
      }
      header.append(header.empty() ? "{" : ",");
      header += tensor_json(name, "F32", tensor.shape, begin, data.size());
    }
    return safetensors_file(header.empty() ? "{}" : header + "}", data);
  }

  std::map<std::string, Tensor> tensors_;
};

}  // namespace locant
