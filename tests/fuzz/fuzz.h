// What the fuzz targets share. A target is a function of bytes (libFuzzer's LLVMFuzzerTestOneInput)
// that must return: an error of locant's own kind is an answer, anything else a finding.
//   clang, preset `fuzz`: linked with libFuzzer (./run fuzz)
//   every other build:    linked with replay.cc, a test that replays the corpus and its mutations
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace locant::fuzz {

// A finding: libFuzzer and the test both notice an abort, and keep the input.
[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

inline void expect(bool condition, const std::string& what) {
  if (!condition) finding(what);
}

// Runs `action`; returns the message of its std::invalid_argument, or nothing. Messages name their
// scope and are short whatever a file holds; exceptions of other types are findings.
inline std::string complaint_of(const std::function<void()>& action) {
  constexpr size_t kLongest = 8192;
  try {
    action();
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    expect(text.starts_with('[') && text.find("] ") != text.npos, "no scope in: " + text);
    expect(text.size() <= kLongest,
           "a message of " + std::to_string(text.size()) + " bytes: " + text.substr(0, 200));
    return text;
  } catch (const std::exception& error) {
    finding(std::string("an error of another kind: ") + error.what());
  }
  return "";
}

// Takes an input apart. Bytes that are not there are zeros.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto out = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return out;
  }

  // From `least` to `most`.
  int64_t between(int64_t least, int64_t most) { return least + byte() % (most - least + 1); }

  bool flag() { return byte() % 2 == 1; }

  template <class T, size_t n>
  const T& one_of(const T (&choices)[n]) {
    return choices[byte() % n];
  }

  // Up to a byte 0x1e, the "record separator", which goes.
  std::string_view part() {
    const size_t end = std::min(rest_.find('\x1e'), rest_.size());
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return out;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace locant::fuzz
