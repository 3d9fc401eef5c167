#include "locant/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "locant/core/error.h"
#include "locant/io/json.h"

namespace locant::inline v0 {
namespace {

using nlohmann::json;

constexpr const char* kScope = "safetensors";
constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr size_t kMostAxes = 8;

constexpr std::array<std::pair<std::string_view, size_t>, 17> kTypes = {{
    {"F64", 8},
    {"F32", 4},
    {"F16", 2},
    {"BF16", 2},
    {"I64", 8},
    {"I32", 4},
    {"I16", 2},
    {"I8", 1},
    {"U64", 8},
    {"U32", 4},
    {"U16", 2},
    {"U8", 1},
    {"BOOL", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"C64", 8},
}};

std::optional<size_t> bytes_of_type(std::string_view dtype) {
  for (const auto& [name, size] : kTypes)
    if (name == dtype) return size;
  return std::nullopt;
}

// The header's text, after checks that need no JSON.
std::string_view header_text(const std::string& path, const MappedFile& file) {
  const std::string_view text = file.text();
  require(text.size() >= kLengthBytes, kScope, path, ": has ", text.size(),
          " bytes, too short for a safetensors file; download or save it again");
  uint64_t length = 0;
  for (size_t at = 0; at < kLengthBytes; ++at)
    length |= uint64_t{static_cast<unsigned char>(text[at])} << (8 * at);
  // What torch.save writes: a zip archive, or a bare pickle. A header of 640 bytes begins as one,
  // too.
  const bool header = length < text.size() - kLengthBytes && text[kLengthBytes] == '{';
  require(header || (!text.starts_with("PK\x03\x04") && !text.starts_with("\x80\x02")), kScope,
          path,
          ": is a PyTorch pickle under another name; convert it with safetensors.torch.save_file");
  require(length <= kMostHeader, kScope, path, ": header length ", length,
          " is beyond the limit of ", kMostHeader, " bytes; not a safetensors file?");
  require(length <= text.size() - kLengthBytes, kScope, path, ": header length ", length,
          " is beyond the file's end (", text.size(),
          " bytes); the file is truncated, download or save it again");
  require(length >= 2 && text[kLengthBytes] == '{', kScope, path, ": the header of ", length,
          " bytes must begin with '{', got ",
          shown(text.substr(kLengthBytes, std::min<uint64_t>(length, 8))),
          "; not a safetensors file?");
  return text.substr(kLengthBytes, length);
}

// A number of the header that must be a whole one and not negative.
uint64_t whole(const std::string& where, const char* what, const json& value) {
  require(value.is_number_unsigned(), kScope, where, what, " must hold whole numbers >= 0, got ",
          shown(value.dump(-1, ' ', true, json::error_handler_t::replace)));
  return value.get<uint64_t>();
}

const json& member(const std::string& where, const json& entry, const char* key, bool is_right,
                   const char* kind) {
  require(is_right, kScope, where, key, " must be ", kind, ", got ",
          entry.contains(key) ? entry[key].type_name() : "nothing");
  return entry[key];
}

// Bytes of a shape, or a failure if 64 bits do not hold them: checked before multiplying.
uint64_t checked_bytes(const std::string& where, const std::vector<int64_t>& shape, size_t size) {
  uint64_t bytes = size;
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (const int64_t extent : shape)
    require(empty || !__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes), kScope,
            where, "shape ", shape_text(shape), " has more bytes than 64 bits can count");
  return empty ? 0 : bytes;
}

// One tensor, and where its data begins and ends.
struct Entry {
  StoredTensor tensor;
  uint64_t begin = 0, end = 0;
};

Entry read_entry(const std::string& path, const std::string& name, const json& entry,
                 std::string_view data) {
  const std::string where = path + ": tensor " + shown(name) + ": ";
  require(entry.is_object(), kScope, where, "must be an object, got ", entry.type_name());
  const auto is = [&](const char* key, auto test) {
    return entry.contains(key) && (entry[key].*test)();
  };
  Entry out;
  out.tensor.name = name;
  out.tensor.dtype = member(where, entry, "dtype", is("dtype", &json::is_string), "a string");
  const std::optional<size_t> size = bytes_of_type(out.tensor.dtype);
  if (!size) {
    std::string known;
    for (const auto& [type, _] : kTypes) known.append(known.empty() ? "" : ", ").append(type);
    fail(kScope, where, "unknown dtype ", shown(out.tensor.dtype), "; known: ", known);
  }

  const json& shape = member(where, entry, "shape", is("shape", &json::is_array), "a list");
  require(shape.size() <= kMostAxes, kScope, where, "has ", shape.size(), " axes, more than ",
          kMostAxes);
  for (const json& extent : shape) {
    const uint64_t number = whole(where, "shape", extent);
    require(number <= uint64_t{std::numeric_limits<int64_t>::max()}, kScope, where, "shape has ",
            number, ", beyond 2^63");
    out.tensor.shape.push_back(static_cast<int64_t>(number));
  }

  const json& offsets =
      member(where, entry, "data_offsets", is("data_offsets", &json::is_array), "a list");
  require(offsets.size() == 2, kScope, where, "data_offsets must hold 2 numbers, got ",
          offsets.size());
  out.begin = whole(where, "data_offsets", offsets[0]);
  out.end = whole(where, "data_offsets", offsets[1]);
  require(out.begin <= out.end, kScope, where, "data_offsets end before they begin: ", out.begin,
          " to ", out.end);
  const uint64_t bytes = checked_bytes(where, out.tensor.shape, *size);
  require(out.end - out.begin == bytes, kScope, where, "shape ", shape_text(out.tensor.shape),
          " of ", out.tensor.dtype, " takes ", bytes, " bytes, but data_offsets ", out.begin,
          " to ", out.end, " hold ", out.end - out.begin);
  require(out.end <= data.size(), kScope, where, "ends at byte ", out.end,
          " of the data, but the file holds ", data.size(),
          "; the file is truncated, download or save it again");
  out.tensor.bytes = std::as_bytes(std::span(data.data() + out.begin, out.end - out.begin));
  return out;
}

// Every byte of the data belongs to exactly one tensor.
void check_layout(const std::string& path, const std::vector<Entry>& entries, uint64_t size) {
  uint64_t at = 0;
  const Entry* before = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < at)
      fail(kScope, path, ": tensors ", shown(before->tensor.name), " (", before->begin, " to ",
           before->end, ") and ", shown(entry.tensor.name), " (", entry.begin, " to ", entry.end,
           ") overlap");
    require(entry.begin == at, kScope, path, ": bytes ", at, " to ", entry.begin,
            " of the data, before tensor ", shown(entry.tensor.name), ", belong to no tensor");
    at = entry.end;
    before = &entry;
  }
  require(at == size, kScope, path, ": the last ", size - at, " of ", size,
          " bytes of data belong to no tensor");
}

template <class Stored>
void convert(std::span<const std::byte> bytes, float* out) {
  for (size_t n = 0; n < bytes.size() / sizeof(Stored); ++n) {
    Stored value;  // by memcpy: the bytes may lie anywhere
    std::memcpy(&value, bytes.data() + n * sizeof(Stored), sizeof(Stored));
    out[n] = static_cast<float>(value);
  }
}

// Views have 4 axes at most.
void require_viewable(const StoredTensor& tensor) {
  require(tensor.shape.size() <= 4, kScope, "tensor ", shown(tensor.name), " has shape ",
          shape_text(tensor.shape), ", more than 4 axes");
}

}  // namespace

std::span<const std::pair<std::string_view, size_t>> stored_types() {
  return kTypes;
}

int64_t StoredTensor::elements() const {
  return static_cast<int64_t>(bytes.size() / bytes_of_type(dtype).value_or(1));
}

std::optional<DType> StoredTensor::view_dtype() const {
  if (dtype == "F32") return DType::f32;
  if (dtype == "F64") return DType::f64;
  if (dtype == "F16") return DType::f16;
  if (dtype == "BF16") return DType::bf16;
  if (dtype == "BOOL") return DType::boolean;
  if (dtype == "I64") return DType::i64;
  return std::nullopt;
}

bool StoredTensor::aligned() const {
  return reinterpret_cast<uintptr_t>(bytes.data()) % bytes_of_type(dtype).value_or(1) == 0;
}

ConstView StoredTensor::view() const {
  const std::optional<DType> type = view_dtype();
  require(type.has_value(), kScope, "tensor ", shown(name), " has dtype ", dtype,
          ", which is only listed, not read");
  require_viewable(*this);
  require(aligned(), kScope, "tensor ", shown(name), " does not begin at a multiple of ",
          size_of(*type), " bytes; copy() it");
  return ConstView(bytes.data(), *type, shape);
}

Tensor StoredTensor::copy() const {
  const std::optional<DType> type = view_dtype();
  require(type.has_value(), kScope, "tensor ", shown(name), " has dtype ", dtype,
          ", which is only listed, not read");
  require_viewable(*this);
  Tensor out(*type, shape);
  if (!bytes.empty()) std::memcpy(out.view().data, bytes.data(), bytes.size());
  return out;
}

Tensor StoredTensor::to_float32() const {
  const std::optional<DType> type = view_dtype();
  require(type && is_floating(*type), kScope, "tensor ", shown(name), " has dtype ", dtype,
          ", which does not serve as float32");
  require_viewable(*this);
  Tensor out(DType::f32, shape);
  float* to = static_cast<float*>(out.view().data);
  if (*type == DType::f32) convert<float>(bytes, to);
  if (*type == DType::f64) convert<double>(bytes, to);
  if (*type == DType::f16) convert<Half>(bytes, to);
  if (*type == DType::bf16) convert<Bfloat>(bytes, to);
  return out;
}

Safetensors::Safetensors(const std::string& path) : path_(path), file_(kScope, path) {
  const std::string_view header = header_text(path, file_);
  const std::string_view data = file_.text().substr(kLengthBytes + header.size());
  const json parsed = parse_json_object(kScope, path, header);

  std::vector<Entry> entries;
  for (const auto& item : parsed.items()) {
    if (item.key() == "__metadata__") {
      const std::string where = path + ": __metadata__ ";
      require(item.value().is_object(), kScope, where, "must be an object");
      for (const auto& [key, value] : item.value().items()) {
        require(value.is_string(), kScope, where, shown(key), " must be a string");
        metadata_[key] = value.get<std::string>();
      }
    } else {
      entries.push_back(read_entry(path, item.key(), item.value(), data));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_layout(path, entries, data.size());
  for (Entry& entry : entries) tensors_.push_back(std::move(entry.tensor));
  for (size_t n = 0; n < tensors_.size(); ++n) by_name_[tensors_[n].name] = n;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace locant::inline v0
