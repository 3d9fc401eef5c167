// Errors: std::invalid_argument("[scope] what was wrong, with the numbers, and what to do").
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace locant::inline v0 {

// fail("shaw", "max_distance must be >= 1, got ", 0) throws "[shaw] max_distance must be >= 1, got
// 0".
template <class... Parts>
[[noreturn]] void fail(std::string_view scope, const Parts&... parts) {
  std::ostringstream text;
  text << '[' << scope << "] ";
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

// Fails unless `condition` holds.
template <class... Parts>
void require(bool condition, std::string_view scope, const Parts&... parts) {
  if (!condition) fail(scope, parts...);
}

}  // namespace locant::inline v0
