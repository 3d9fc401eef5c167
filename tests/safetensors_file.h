// Files in the format of safetensors, right or wrong, written from its description.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace locant {

static_assert(std::endian::native == std::endian::little);

inline std::string little_endian(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::string safetensors_file(std::string_view header, std::string_view data = "") {
  return little_endian(header.size()) + std::string(header) + std::string(data);
}

template <class T>
std::string bytes_of(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// {"name":{"dtype":…,"shape":[…],"data_offsets":[begin,end]}} without the outer braces.
inline std::string tensor_json(std::string_view name, std::string_view dtype,
                               std::string_view shape, uint64_t begin, uint64_t end) {
  std::ostringstream out;
  out << '"' << name << R"(":{"dtype":")" << dtype << R"(","shape":[)" << shape
      << R"(],"data_offsets":[)" << begin << ',' << end << "]}";
  return out.str();
}

}  // namespace locant
