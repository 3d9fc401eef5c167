#include "locant/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

// What a Git LFS checkout without its content holds in place of a file.
constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";

// Closes at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::string join_path(const std::string& dir, std::string_view name) {
  std::string path = dir;
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

bool is_file(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

void require_folder(std::string_view scope, const std::string& dir) {
  struct stat about {};
  const char* const wanted = "; give the folder that holds config.json";
  if (stat(dir.c_str(), &about) != 0) fail(scope, dir, ": ", std::strerror(errno), wanted);
  require(S_ISDIR(about.st_mode), scope, dir, ": is not a folder", wanted);
}

MappedFile::MappedFile(std::string_view scope, const std::string& path) {
  // Looked at before it is opened: opening a pipe would wait for a writer.
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) fail(scope, path, ": ", std::strerror(errno));
  require(!S_ISDIR(about.st_mode), scope, path, ": is a folder, not a file");
  require(S_ISREG(about.st_mode), scope, path, ": is not a regular file");
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0 || fstat(file.number(), &about) != 0)
    fail(scope, path, ": ", std::strerror(errno));
  size_ = static_cast<size_t>(about.st_size);
  if (size_ == 0) return;  // an empty file cannot be mapped
  void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED)
    fail(scope, path, ": cannot map ", size_, " bytes: ", std::strerror(errno));
  data_ = static_cast<const std::byte*>(memory);
  if (!text().starts_with(kPointer)) return;
  munmap(memory, size_);  // the destructor of an object that was never made does not run
  fail(scope, path, ": is a Git LFS pointer of ", size_,
       " bytes, not the file itself; run `git lfs pull` in its folder");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

std::string legible(std::string_view text) {
  constexpr size_t kMost = 200;
  const bool printable = std::all_of(text.begin(), text.end(),
                                     [](char byte) { return byte >= ' ' && byte < 0x7f; });
  return printable && text.size() <= kMost ? std::string(text) : shown(text);
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 60;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "'";
  for (const unsigned char byte : text.substr(0, kMost)) {
    if (byte >= ' ' && byte < 0x7f) {
      out += static_cast<char>(byte);
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out + (text.size() > kMost ? "...'" : "'");
}

std::string read_file(std::string_view scope, const std::string& path, size_t most) {
  const MappedFile file(scope, path);
  require(file.bytes().size() <= most, scope, path, ": has ", file.bytes().size(),
          " bytes, more than the ", most, " that such a file may have");
  return std::string(file.text());
}

}  // namespace locant::inline v0
