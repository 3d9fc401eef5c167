#include "cli/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace locant::cli {
namespace {

// "VmRSS:   1234 kB" -> bytes
std::optional<int64_t> status_line(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return std::nullopt;
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

}  // namespace

std::optional<int64_t> extra_peak_memory(const std::function<void()>& body) {
#ifdef __GLIBC__
  malloc_trim(0);  // memory kept from earlier calls would hide what this one takes
#endif
  const bool reset = reset_peak();
  const std::optional<int64_t> before = status_line("VmRSS");
  body();
  const std::optional<int64_t> peak = status_line("VmHWM");
  if (!reset || !before || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before);
}

}  // namespace locant::cli
