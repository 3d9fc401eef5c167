// Files of a model's folder: mapped or read whole, with errors that say which file and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "locant/core/api.h"

namespace locant::inline v0 {

// "dir/name"; a dir that ends with a slash gets no second one.
LOCANT_API std::string join_path(const std::string& dir, std::string_view name);

// Whether there is a regular file, or a link to one, with this path.
LOCANT_API bool is_file(const std::string& path);

// Fails, in the words of `scope`, unless `dir` is a folder.
LOCANT_API void require_folder(std::string_view scope, const std::string& dir);

// A file as read-only memory. Nothing is read before it is looked at. Bytes that another program
// changes or cuts off while the file is mapped are out of scope: keep the files of a loaded model.
class LOCANT_API MappedFile {
 public:
  // Fails, in the words of `scope`, if the path is no readable regular file, or a Git LFS pointer.
  MappedFile(std::string_view scope, const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole content of a file of at most `most` bytes; fails as MappedFile does.
LOCANT_API std::string read_file(std::string_view scope, const std::string& path, size_t most);

// Text of a file for a message: in quotes, at most 60 bytes, what is not printable ASCII as \xNN.
LOCANT_API std::string shown(std::string_view text);

// The same for names and short phrases: as it is, without quotes, if that is short and printable.
LOCANT_API std::string legible(std::string_view text);

}  // namespace locant::inline v0
