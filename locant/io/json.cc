#include "locant/io/json.h"

#include <unordered_set>
#include <vector>

#include "locant/core/error.h"
#include "locant/io/file.h"

namespace locant::inline v0 {
namespace {

constexpr int kDepth = 32;

// The library's message without its "[json.exception.parse_error.101]".
std::string reason_of(const nlohmann::json::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2)).substr(0, 200);
}

}  // namespace

nlohmann::json parse_json_object(std::string_view scope, const std::string& source,
                                 std::string_view text) {
  using nlohmann::json;
  // The parser would take one for the end of the text and look no further.
  require(text.find('\0') == text.npos, scope, source, ": not JSON: it has a NUL byte");
  std::vector<std::unordered_set<std::string>> keys;  // of each object that is still open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    require(depth < kDepth, scope, source, ": JSON nested more than ", kDepth, " deep");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      require(keys.back().insert(key).second, scope, source, ": the key ", shown(key),
              " appears twice");
    }
    return true;
  };
  try {
    json out = json::parse(text, watch);
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
