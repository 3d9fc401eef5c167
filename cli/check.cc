// locant check: every encoding's fused attention against its float64 reference.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/validators.h"
#include "locant/check/check.h"
#include "locant/check/ulp.h"
#include "locant/core/error.h"
#include "locant/kernels/isa.h"

namespace locant::cli {
namespace {

struct CheckFlags {
  std::vector<std::string> names;
  std::vector<std::string> isas;
  int64_t number = -1;  // --case; -1: all
  bool gradients = false;
  bool ulp = false;
  bool quiet = false;
};

// A line on standard error that overwrites itself, once the work has taken two seconds.
class Progress {
 public:
  void show(const std::string& text) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    if (!terminal_ || elapsed.count() < 2) return;
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
};

std::vector<const EncodingEntry*> chosen_encodings(const std::vector<std::string>& names) {
  std::vector<const EncodingEntry*> out;
  for (const std::string& name : names) out.push_back(&find_encoding(name));
  if (names.empty())
    for (const EncodingEntry& entry : encodings()) out.push_back(&entry);
  return out;
}

std::vector<std::string> chosen_isas(const std::vector<std::string>& names) {
  const std::vector<std::string> available = available_isas();
  if (names.empty()) return available;
  for (const std::string& name : names)
    if (std::find(available.begin(), available.end(), name) == available.end()) {
      std::string known;
      for (const std::string& other : available) known += (known.empty() ? "" : ", ") + other;
      fail("check", "no ISA '", name, "' here; available: ", known);
    }
  return names;
}

std::vector<CheckCase> chosen_cases(const EncodingEntry& entry, const CheckFlags& flags) {
  std::vector<CheckCase> cases = flags.gradients ? gradient_cases(entry) : check_cases(entry);
  if (flags.number < 0) return cases;
  require(flags.number < static_cast<int64_t>(cases.size()), "check", entry.name,
          " has cases 0 to ", cases.size() - 1, ", got --case ", flags.number);
  return {cases[flags.number]};
}

// Of one encoding on one ISA.
struct Summary {
  int64_t failed = 0;
  double worst = 0;
  std::vector<GradientError> gradients;  // the worst of each tensor

  void add(const CheckResult& result) {
    failed += result.passed ? 0 : 1;
    worst = std::max(worst, result.ratio);
  }
  void add(const GradientResult& result) {
    add(static_cast<const CheckResult&>(result));
    for (const GradientError& error : result.errors) {
      const auto found = std::find_if(gradients.begin(), gradients.end(),
                                      [&](const auto& x) { return x.tensor == error.tensor; });
      GradientError& sum = found == gradients.end() ? gradients.emplace_back() : *found;
      sum.tensor = error.tensor;
      sum.differences = std::max(sum.differences, error.differences);
      sum.rounding = std::max(sum.rounding, error.rounding);
    }
  }
};

// Errors of all tensors together, then of each: "q 1e-11 2e-07".
std::string errors_text(const Summary& summary) {
  std::string out;
  for (const GradientError& error : summary.gradients)
    out += fmt::format("  {} {:.0e} {:.0e}", error.tensor, error.differences, error.rounding);
  return out;
}

void print_failure(const CheckCase& check, const CheckResult& result) {
  fmt::print("FAILED {}: {}\n  {}\n  repeat: {}\n", result.name, result.failure, describe(check),
             result.command);
}

// The chosen cases of one encoding, on every ISA.
template <class Run>
std::vector<Summary> run_cases(const std::string& name, const std::vector<CheckCase>& cases,
                               const std::vector<std::string>& isas, const CheckFlags& flags,
                               Progress& progress, const Run& run) {
  std::vector<Summary> summaries(isas.size());
  for (const CheckCase& item : cases) {
    if (flags.number >= 0 && !flags.quiet) fmt::print("{}\n", describe(item));
    progress.show(fmt::format("{} case {} of {}", name, item.number, cases.size()));
    const auto results = run(item, isas);
    for (size_t n = 0; n < results.size(); ++n) {
      summaries[n].add(results[n]);
      if (results[n].passed) continue;
      progress.clear();
      print_failure(item, results[n]);
    }
  }
  progress.clear();
  return summaries;
}

int check(const CheckFlags& flags) {
  const std::vector<std::string> isas = chosen_isas(flags.isas);
  const std::vector<const EncodingEntry*> entries = chosen_encodings(flags.names);
  std::vector<std::vector<CheckCase>> cases_of_entries;  // first, so that errors come first
  for (const EncodingEntry* entry : entries)
    cases_of_entries.push_back(chosen_cases(*entry, flags));
  Progress progress;
  int64_t failed = 0;
  if (!flags.quiet)
    fmt::print("{:<16}{:<10}{:>6}{:>8}  {}\n", "encoding", "isa", "cases", "failed",
               flags.gradients ? "worst error / tolerance, of each tensor: f64, f32"
                               : "worst error / tolerance");
  for (size_t at = 0; at < entries.size(); ++at) {
    const std::string& name = entries[at]->name;
    const std::vector<CheckCase>& cases = cases_of_entries[at];
    const std::vector<Summary> summaries =
        flags.gradients ? run_cases(name, cases, isas, flags, progress, run_gradient_check)
                        : run_cases(name, cases, isas, flags, progress, run_check);
    for (size_t n = 0; n < isas.size(); ++n) {
      failed += summaries[n].failed;
      if (!flags.quiet)
        fmt::print("{:<16}{:<10}{:>6}{:>8}  {:.3f}{}\n", name, isas[n], cases.size(),
                   summaries[n].failed, summaries[n].worst, errors_text(summaries[n]));
    }
  }
  if (failed > 0) fmt::print("{} failed\n", failed);
  return failed > 0 ? 1 : 0;
}

// Errors of float32 in units in the last place: numbers to look at, not a check.
int print_ulp(const CheckFlags& flags) {
  const std::vector<std::string> isas = chosen_isas(flags.isas);
  fmt::print("{:<16}{:<10}{:>9}{:>9}{:>9}\n", "encoding", "isa", "results", "p99", "worst");
  for (const EncodingEntry* entry : chosen_encodings(flags.names))
    for (const UlpResult& result : measure_ulp(*entry, isas))
      fmt::print("{:<16}{:<10}{:>9}{:>9.2f}{:>9.2f}\n", entry->name, result.isa, result.results,
                 result.p99, result.worst);
  fmt::print(
      "in units in the last place of a head's largest result; loops: the reference's, in float32\n");
  return 0;
}

}  // namespace

Command add_check(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "check", "Compare the fused kernels with each encoding's float64 reference");
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("names", flags->names, "Encodings; all if none is named");
  command->add_option("--isa", flags->isas, "Instruction sets, comma separated; all if not given")
      ->delimiter(',');
  command->add_option("--case", flags->number, "Only this case")->check(at_least(0));
  command->add_flag("--gradients", flags->gradients,
                    "Compare the backward with differences of the reference instead");
  command
      ->add_flag("--ulp", flags->ulp,
                 "Print float32's error in units in the last place, at positions up to 2^20")
      ->excludes("--gradients")
      ->excludes("--case");
  command->add_flag("--quiet", flags->quiet, "Print failures only");
  command->footer(
      "Tolerance: 2 x the error of the same loops in float32, + 1e-6; in float64 1e-12. Results in "
      "f16 or bf16 may differ by half a unit in their last place more. Gradients: 1e-8 of their "
      "length in float64, 2e-5 of the largest element in float32.");
  return [flags] { return flags->ulp ? print_ulp(*flags) : check(*flags); };
}

}  // namespace locant::cli
