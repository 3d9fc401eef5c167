#include "locant/kernels/isa.h"

#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#include "locant/core/error.h"
#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/isa.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// Compiled once per instruction set: the answer comes from the code that runs.
int64_t RunningTarget() {
  return HWY_TARGET;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RunningTarget);

namespace {

std::string name_of_target(int64_t target) {
  if (target == HWY_EMU128 || target == HWY_SCALAR) return "scalar";
  std::string name = hwy::TargetName(target);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<int64_t> targets() {  // best first
  std::vector<int64_t> out;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) out.push_back(target);
  return out;
}

size_t index_of(int64_t target) {
  hwy::ChosenTarget chosen;  // a local one: the process-wide choice stays untouched
  chosen.Update(target);
  return chosen.GetIndex();
}

size_t index_of(const std::string& name) {
  std::string known;
  for (int64_t target : targets()) {
    if (name == "best" || name == name_of_target(target)) return index_of(target);
    known += (known.empty() ? "" : ", ") + name_of_target(target);
  }
  fail("isa", "'", name, "' is not available here; available: ", known);
}

std::atomic<size_t>& chosen() {
  static std::atomic<size_t> index = [] {
    const char* forced = std::getenv("LOCANT_ISA");
    return index_of(std::string(forced != nullptr && *forced != '\0' ? forced : "best"));
  }();
  return index;
}

}  // namespace

size_t isa_index() {
  return chosen().load(std::memory_order_relaxed);
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (int64_t target : targets()) names.push_back(name_of_target(target));
  return names;
}

std::string isa() {
  return name_of_target(LOCANT_DISPATCH(RunningTarget)());
}

void set_isa(const std::string& name) {
  chosen().store(index_of(name));
}

}  // namespace locant::inline v0
#endif
