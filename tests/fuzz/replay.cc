// Runs a fuzz target without libFuzzer: every file of a folder, then mutations of them that are the
// same on every machine. A finding aborts; the input that did it is written beside.
//   replay CORPUS MUTATIONS
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "locant/check/random.h"
#include "tests/fuzz/fuzz.h"

namespace locant {
namespace {

std::string current;  // the input that is running

void on_abort(int signal) {
  std::ofstream("finding.bin", std::ios::binary) << current;
  std::fprintf(stderr, "signal %d; the input is in finding.bin (%zu bytes)\n", signal,
               current.size());
  std::_Exit(1);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}

// One of libFuzzer's simplest changes: a bit, a byte, a piece out, a piece twice, a piece of
// another file, a number of a text that becomes an extreme one.
void mutate(std::string& input, const std::vector<std::string>& corpus, Random& random) {
  const auto place = [&](const std::string& x) {
    return static_cast<size_t>(random.below(static_cast<int64_t>(x.size()) + 1));
  };
  const size_t at = place(input);
  const auto length = static_cast<size_t>(1 + random.below(16));
  switch (random.below(6)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random.below(256));
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, std::string(input.substr(at, length)));
      break;
    case 4: {
      const std::string& other = corpus[static_cast<size_t>(random.below(std::ssize(corpus)))];
      input.insert(at, other.substr(std::min(place(other), other.size()), length));
      break;
    }
    default: {
      const size_t digit = input.find_first_of("0123456789", at);
      if (digit == input.npos) break;
      static const char* const numbers[] = {
          "0",  "-1", "9223372036854775807",  "1e308", "4294967296",
          "17", "1",  "18446744073709551615", "0.5",   "null"};
      input.replace(digit, 1, numbers[random.below(10)]);
    }
  }
}

void run(const std::string& input) {
  current = input;
  // A copy of exactly its size, so that a byte too many is noticed where someone looks.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

int replay(const std::string& folder, int64_t mutations) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    std::signal(signal, on_abort);
  const std::vector<std::string> corpus = files_of(folder);
  if (corpus.empty()) fuzz::finding("no corpus in " + folder);
  Random random(2018);
  const auto begin = std::chrono::steady_clock::now();
  double slowest = 0;
  const auto timed = [&](const std::string& input) {
    alarm(60);  // an input that takes a minute is a finding
    const auto before = std::chrono::steady_clock::now();
    run(input);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - before;
    slowest = std::max(slowest, taken.count());
  };
  for (const std::string& input : corpus) timed(input);
  for (int64_t n = 0; n < mutations; ++n) {
    std::string input = corpus[static_cast<size_t>(random.below(std::ssize(corpus)))];
    for (int64_t turns = 1 + random.below(4); turns > 0; --turns) mutate(input, corpus, random);
    timed(input);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf("%zu files, %lld mutations in %.1f s; slowest %.1f ms; at most %ld MB\n",
              corpus.size(), static_cast<long long>(mutations), taken.count(), 1e3 * slowest,
              use.ru_maxrss / 1024);
  return 0;
}

}  // namespace
}  // namespace locant

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s CORPUS MUTATIONS\n", arguments[0]);
    return 2;
  }
  return locant::replay(arguments[1], std::atoll(arguments[2]));
}
