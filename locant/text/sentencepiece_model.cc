// A model is a protobuf message. Of it this reads
//   normalizer_spec = 3, denormalizer_spec = 5 { precompiled_charsmap = 2 }
// and a precompiled_charsmap is
//   uint32 n, n bytes of a trie (a double array of Darts), strings that end with a zero byte
// where the trie's values are places in the strings.
#include "locant/text/sentencepiece_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "locant/core/error.h"
#include "locant/text/unicode.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "tokenizer";
constexpr uint64_t kNormalizers[] = {3, 5}, kCharsmap = 2;

// The fields of a message, one after another.
class Message {
 public:
  Message(const std::string& path, std::string_view bytes) : path_(path), rest_(bytes) {}

  struct Field {
    uint64_t number = 0;
    std::string_view bytes;  // of fields with a length; others are passed over
  };

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field{.number = tag >> 3, .bytes = {}};
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        reject();
    }
    return field;
  }

 private:
  [[noreturn]] void reject() const {
    fail(kScope, path_, ": is no SentencePiece model: its fields do not follow one another");
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) reject();
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      out |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return out;
    }
    reject();
  }

  const std::string& path_;
  std::string_view rest_;
};

// A double array: unit i leads with byte c to unit base(i) ^ c, if the label there is c. Where a
// key ends, unit base(i) holds its value.
class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / sizeof(uint32_t)) {
    if (!units_.empty()) std::memcpy(units_.data(), bytes.data(), units_.size() * sizeof(uint32_t));
  }

  // What is wrong, or null: every walk must end, stay inside, meet few keys and find a string.
  // Equal ends of keys are shared, so several units may lead to one.
  const char* mistake(std::string_view strings) const {
    // SentencePiece has room for so many keys that begin at one place of a text.
    constexpr int kMostKeys = 32, kNew = -2, kOpen = -1;
    if (units_.empty()) return "has no units";
    const std::vector<std::vector<size_t>> children = units_by_base();
    // By unit: the most keys that end there and on one way further.
    std::vector<int> keys(units_.size(), kNew);
    std::vector<std::pair<size_t, size_t>> open = {{0, 0}};  // units on the way, their next child
    while (!open.empty()) {
      auto& [unit, next] = open.back();
      const size_t base = base_of(unit);
      const bool ends = unit != 0 && ends_a_key(unit);
      if (keys[unit] == kNew) {
        keys[unit] = kOpen;
        if ((base | 0xff) >= units_.size()) return "leads outside of itself";
        const uint32_t value = units_[base] & 0x7fffffffu;
        if (ends && value >= strings.size()) return "has a value outside of the strings";
        if (ends && (static_cast<unsigned char>(strings[value]) & 0xc0) == 0x80)
          return "has a value inside of a character";
      }
      if (next < children[base].size()) {
        const size_t child = children[base][next++];
        if (keys[child] == kOpen) return "leads back to where it came from";
        if (keys[child] == kNew) open.emplace_back(child, 0);
        continue;
      }
      int most = 0;
      for (const size_t child : children[base]) most = std::max(most, keys[child]);
      keys[unit] = most + (ends ? 1 : 0);
      if (keys[unit] > kMostKeys) return "has more than 32 keys that begin with each other";
      open.pop_back();
    }
    return nullptr;
  }

 private:
  size_t base_of(size_t unit) const {
    const uint32_t x = units_[unit];
    return unit ^ (size_t{x >> 10} << ((x & (1u << 9)) >> 6));
  }
  bool ends_a_key(size_t unit) const { return (units_[unit] >> 8 & 1) == 1; }

  // By base: the units that a walk from there can reach. Those with the highest bit hold values.
  std::vector<std::vector<size_t>> units_by_base() const {
    std::vector<std::vector<size_t>> out(units_.size());
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      const size_t base = unit ^ (units_[unit] & 0xff);
      if (units_[unit] >> 31 == 0 && base < out.size()) out[base].push_back(unit);
    }
    return out;
  }

  std::vector<uint32_t> units_;
};

void check_charsmap(const std::string& path, std::string_view map) {
  if (map.empty()) return;
  const auto reject = [&](const char* why) {
    fail(kScope, path, ": its table of normalisations ", why);
  };
  uint32_t size = 0;
  if (map.size() < sizeof size) reject("is too short");
  std::memcpy(&size, map.data(), sizeof size);  // little-endian, as all machines that build locant
  map.remove_prefix(sizeof size);
  if (size > map.size() || size % sizeof(uint32_t) != 0) reject("has a wrong size");
  const std::string_view strings = map.substr(size);
  if (strings.empty() || strings.back() != '\0') reject("does not end with a string");
  require_utf8(path + ": its table of normalisations", strings);
  if (const char* mistake = Trie(map.substr(0, size)).mistake(strings)) reject(mistake);
}

}  // namespace

void check_sentencepiece_model(const std::string& path, std::string_view model) {
  Message whole(path, model);
  while (const auto field = whole.next()) {
    if (field->number != kNormalizers[0] && field->number != kNormalizers[1]) continue;
    Message normalizer(path, field->bytes);
    while (const auto inner = normalizer.next())
      if (inner->number == kCharsmap) check_charsmap(path, inner->bytes);
  }
}

}  // namespace locant::inline v0
