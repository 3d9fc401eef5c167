// JSON text from files that nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace locant::inline v0 {

// Fails, in the words of `scope` and naming `source`, if the text is not one JSON object, is nested
// more than 32 deep, or has a key twice in one object.
nlohmann::json parse_json_object(std::string_view scope, const std::string& source,
                                 std::string_view text);

}  // namespace locant::inline v0
