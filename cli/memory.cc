#include "cli/memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

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

std::optional<int64_t> extra_peak_here(const std::function<void()>& body) {
  const bool reset = reset_peak();
  const std::optional<int64_t> before = status_line("VmRSS");
  body();
  const std::optional<int64_t> peak = status_line("VmHWM");
  if (!reset || !before || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before);
}

// The child: sends the answer, if there is one, and ends without the parent's clean-up.
[[noreturn]] void answer(const std::function<void()>& prepare, const std::function<void()>& body,
                         int write_end) {
  bool sent = false;
  try {
    prepare();
    if (const std::optional<int64_t> extra = extra_peak_here(body))
      sent = write(write_end, &*extra, sizeof(*extra)) == sizeof(*extra);
  } catch (...) {  // the parent makes the same call and reports the error
  }
  _exit(sent ? 0 : 1);
}

}  // namespace

std::optional<int64_t> extra_peak_memory(const std::function<void()>& prepare,
                                         const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) answer(prepare, body, ends[1]);
  close(ends[1]);
  int64_t extra = 0;
  const bool received = child > 0 && read(ends[0], &extra, sizeof(extra)) == sizeof(extra);
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return received ? std::optional(extra) : std::nullopt;
}

}  // namespace locant::cli
