// Forcing an instruction set, by call and by environment, and proof that the forced one ran.
#include "locant/kernels/isa.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "locant/attention/stats.h"
#include "locant/core/executor.h"
#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"

namespace locant {
namespace {

// One fused call; returns what the kernel says it ran on.
std::string isa_of_a_fused_call() {
  const std::vector<float> x(33 * 8, 0.5f);
  std::vector<float> out(x.size());
  const ConstView in = view(x.data(), {1, 1, 33, 8});
  const auto none = make_encoding("none", {{"heads", 1}, {"head_dim", 8}});
  const int64_t before = stats().fused_calls;
  attend(in, in, in, *none, {}, view(out.data(), {1, 1, 33, 8}));
  EXPECT_EQ(stats().fused_calls, before + 1);
  EXPECT_NEAR(out[0], 0.5f, 1e-6f);
  return isa();
}

TEST(IsaTest, SetIsaForcesEachAvailableOne) {
  const std::vector<std::string> names = available_isas();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    set_isa(name);
    EXPECT_EQ(isa_of_a_fused_call(), name);
  }
  set_isa("best");
}

TEST(IsaTest, BestIsTheFirstAvailableOne) {
  set_isa("best");
  const char* forced = std::getenv("LOCANT_ISA");
  EXPECT_EQ(isa_of_a_fused_call(), forced ? std::string(forced) : available_isas().front());
}

TEST(IsaTest, UnknownNameIsAnErrorAndChangesNothing) {
  const std::string before = isa();
  EXPECT_THROW(set_isa("abacus"), std::invalid_argument);
  EXPECT_EQ(isa(), before);
}

// An executor that forces another instruction set between the steps of a call.
class ForcingAnother final : public Executor {
 public:
  int concurrency() const override { return 1; }
  void parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) override {
    const std::vector<std::string> names = available_isas();
    set_isa(names[static_cast<size_t>(++calls) % names.size()]);
    for (int64_t n = 0; n < count; ++n) body(n, 0);
  }
  int calls = 0;
};

TEST(IsaTest, ACallRunsOnTheOneThatItBeganWith) {
  constexpr int64_t kLength = 300, kDim = 16;
  const auto shaw = make_encoding("shaw", {{"heads", 1}, {"head_dim", kDim}});
  shaw->init(1);
  std::vector<float> x(kLength * kDim), out(x.size()), wanted(x.size());
  for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n % 97) / 50.0f - 1.0f;
  const ConstView in = view(std::as_const(x).data(), {1, 1, kLength, kDim});
  // Several items, which share the packed tables.
  const AttendOptions options{.tiling = {.rows = 20, .keys = 32}};
  attend(in, in, in, *shaw, options, view(wanted.data(), {1, 1, kLength, kDim}));
  const auto before = executor();
  const auto forcing = std::make_shared<ForcingAnother>();
  set_executor(forcing);
  attend(in, in, in, *shaw, options, view(out.data(), {1, 1, kLength, kDim}));
  set_executor(before);
  set_isa("best");
  EXPECT_GE(forcing->calls, 2) << "the tables were not packed in a step of their own";
  EXPECT_EQ(out, wanted);
}

// Runs in a child process, see below.
TEST(IsaChild, DISABLED_ReportsItsIsa) {
  std::printf("ran on [%s]\n", isa_of_a_fused_call().c_str());
}

struct ChildRun {
  int status = 0;
  std::string output;
};

// This test program again, with LOCANT_ISA set and only the test above.
ChildRun run_child(const std::string& locant_isa) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  EXPECT_GT(length, 0);
  const std::string command = "LOCANT_ISA='" + locant_isa + "' '" + path.data() +
                              "' --gtest_filter=IsaChild.* --gtest_also_run_disabled_tests 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  ChildRun out;
  std::array<char, 256> chunk{};
  while (std::fgets(chunk.data(), chunk.size(), pipe)) out.output += chunk.data();
  out.status = pclose(pipe);
  return out;
}

TEST(IsaTest, EnvironmentVariableForcesEachAvailableOne) {
  for (const std::string& name : available_isas()) {
    const ChildRun child = run_child(name);
    EXPECT_TRUE(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0) << child.output;
    EXPECT_NE(child.output.find("ran on [" + name + "]"), std::string::npos) << child.output;
  }
}

TEST(IsaTest, UnknownNameInTheEnvironmentIsNamedInAnError) {
  const ChildRun child = run_child("abacus");
  EXPECT_TRUE(WIFEXITED(child.status)) << "an exception, not an abort: " << child.output;
  EXPECT_NE(WEXITSTATUS(child.status), 0);
  EXPECT_NE(child.output.find("abacus"), std::string::npos) << child.output;
}

}  // namespace
}  // namespace locant
