// config.json and its like: typed access by key. What is missing, of another type or out of range
// is an error that names the file, the key and the value.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "locant/core/api.h"

namespace locant::inline v0 {

// An object of a JSON file. Copies share it. Keys that hold null count as missing.
class LOCANT_API Config {
 public:
  // Reads a file of at most 16 MB that holds one JSON object.
  static Config read(const std::string& path);

  // The same from text; `source` stands for the path in messages.
  static Config parse(std::string_view text, const std::string& source);

  // Another file of the same folder, if it is there.
  std::optional<Config> beside(std::string_view name) const;

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;

  // With bounds, both allowed. Numbers are always finite; integers serve as numbers, not the
  // reverse.
  int64_t integer(std::string_view key, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max()) const;
  double number(std::string_view key, double least = std::numeric_limits<double>::lowest(),
                double most = std::numeric_limits<double>::max()) const;
  bool flag(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<bool> flags(std::string_view key) const;
  Config child(std::string_view key) const;
  std::vector<Config> children(std::string_view key) const;  // a list of objects

  // A list of values of any kinds, as an object with the keys "0", "1", ...
  Config items(std::string_view key) const;

  // Whether the value is text, or a list, rather than, say, an object.
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;

  // Whether the key is there and holds null: where that means "none" rather than "as usual".
  bool is_null(std::string_view key) const;

  // The text, which must be one of `choices`.
  std::string choice(std::string_view key, const std::vector<std::string>& choices) const;

  // config.integer_or("type_vocab_size", 0, 0, 1 << 20): the fallback is for missing keys only.
  int64_t integer_or(std::string_view key, int64_t fallback,
                     int64_t least = std::numeric_limits<int64_t>::min(),
                     int64_t most = std::numeric_limits<int64_t>::max()) const;
  double number_or(std::string_view key, double fallback,
                   double least = std::numeric_limits<double>::lowest(),
                   double most = std::numeric_limits<double>::max()) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text_or(std::string_view key, const std::string& fallback) const;

  // Fails with "[config] path: key ...": for checks that need several keys.
  [[noreturn]] void reject(std::string_view key, const std::string& why) const;

 private:
  struct Node;  // hides the JSON library
  explicit Config(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

}  // namespace locant::inline v0
