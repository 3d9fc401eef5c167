#include "locant/io/json.h"

#include <set>
#include <vector>

#include "locant/core/error.h"
#include "locant/io/file.h"

namespace locant::inline v0 {
namespace {

constexpr size_t kDepth = 32;

// The library's message without its "[json.exception.parse_error.101]".
std::string reason_of(const nlohmann::json::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2)).substr(0, 200);
}

// Reads a text and keeps nothing of it but the keys of the objects that are open. A pass of its own
// because the parser's callbacks look through all siblings of every object: 4 s for 20,000 of them.
class Watch {
 public:
  using json = nlohmann::json;

  Watch(std::string_view scope, const std::string& source) : scope_(scope), source_(source) {}

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(json::number_integer_t) { return value(); }
  bool number_unsigned(json::number_unsigned_t) { return value(); }
  bool number_float(json::number_float_t, const std::string&) { return value(); }
  bool string(const std::string&) { return value(); }
  bool binary(const json::binary_t&) { return value(); }
  bool start_object(size_t) { return open(); }
  bool start_array(size_t) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(const std::string& key) {
    value();
    require(keys_.back().insert(key).second, scope_, source_, ": the key ", shown(key),
            " appears twice");
    return true;
  }

  // The parser proper will say what is wrong.
  bool parse_error(size_t, const std::string&, const json::exception&) { return false; }

 private:
  bool value() const {
    require(keys_.size() < kDepth, scope_, source_, ": JSON nested more than ", kDepth, " deep");
    return true;
  }
  bool open() {
    value();
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string_view scope_;
  const std::string& source_;
  // Of each object or list that is open. Not hashed: a file could be made of keys that collide.
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

nlohmann::json parse_json_object(std::string_view scope, const std::string& source,
                                 std::string_view text) {
  using nlohmann::json;
  // The parser would take one for the end of the text and look no further.
  require(text.find('\0') == text.npos, scope, source, ": not JSON: it has a NUL byte");
  try {
    Watch watch(scope, source);
    json::sax_parse(text, &watch);
    json out = json::parse(text);
    require(out.is_object(), scope, source, ": must be a JSON object, got ", out.type_name());
    return out;
  } catch (const json::exception& error) {
    // Python writes these words, which JSON does not have; the parser's message is hard to read.
    for (const char* word : {"NaN", "Infinity"})
      require(text.find(word) == text.npos, scope, source, ": not JSON, which has no ", word, ": ",
              shown(reason_of(error)));
    fail(scope, source, ": not JSON: ", shown(reason_of(error)));
  }
}

}  // namespace locant::inline v0
