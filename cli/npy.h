// numpy's .npy files (format 1.0), written piece by piece.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "locant/core/error.h"
#include "locant/core/view.h"

namespace locant::cli {

// prefix.name.npy for each name; rows are added, and a file holds as many as its head says whenever
// the program ends.
class NpyFiles {
 public:
  explicit NpyFiles(std::string prefix) : prefix_(std::move(prefix)) {}

  // values (rows) or (rows, width), float32, contiguous.
  void append(const std::string& name, const ConstView& values) {
    auto [found, fresh] = files_.try_emplace(name);
    File& file = found->second;
    if (fresh) {
      file.path = prefix_ + "." + name + ".npy";
      file.stream.open(file.path, std::ios::binary);
      require(file.stream.is_open(), "run", file.path, ": cannot be written");
      file.width = values.rank == 1 ? 0 : values.shape[1];
      file.stream << header(file);
    }
    file.rows += values.shape[0];
    file.stream.write(static_cast<const char*>(values.data),
                      values.size() * static_cast<int64_t>(sizeof(float)));
    file.stream.flush();
    file.stream.seekp(0);
    file.stream << header(file);
    file.stream.seekp(0, std::ios::end);
  }

  void close() {
    for (auto& [_, file] : files_) {
      file.stream.close();
      require(!file.stream.fail(), "run", file.path, ": writing failed");
    }
    files_.clear();
  }

 private:
  struct File {
    std::string path;
    std::ofstream stream;
    int64_t rows = 0, width = 0;  // width 0: one axis
  };

  // 128 bytes whatever the numbers, so that it can be written again.
  static std::string header(const File& file) {
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(file.rows) + "," +
                       (file.width == 0 ? "" : " " + std::to_string(file.width)) + "), }";
    text.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n";
  }

  std::string prefix_;
  std::map<std::string, File> files_;
};

}  // namespace locant::cli
