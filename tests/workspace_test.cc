// What calls of one model share: workspaces and projected encodings. Nobody waits for another
// thread's lock: a child that was forked meanwhile would wait for ever.
#include "locant/models/workspace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "locant/encodings/none/none.h"
#include "locant/models/projected.h"

namespace locant {
namespace {

// Runs `action` in a forked child; whether it returned in time.
bool ends_in_a_child(const std::function<void()>& action) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    action();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Something that a thread is busy making.
std::atomic<bool> wait_for_release{false};
std::atomic<int> waiting{0};

void make_slowly() {
  if (!wait_for_release) return;
  ++waiting;
  while (wait_for_release) std::this_thread::yield();
  --waiting;
}

// Runs `check` while another thread is inside `make`.
void during(const std::function<void()>& make, const std::function<void()>& check) {
  wait_for_release = true;
  std::thread other(make);
  while (waiting == 0) std::this_thread::yield();
  check();
  wait_for_release = false;
  other.join();
}

struct SlowWorkspace {
  SlowWorkspace() { make_slowly(); }
  int calls = 0;
};

TEST(Workspaces, AreKeptForTheNextCall) {
  WorkspacePool<SlowWorkspace> pool;
  for (int call = 0; call < 3; ++call) {
    const WorkspacePool<SlowWorkspace>::Borrowed work(pool);
    EXPECT_EQ((*work).calls++, call);
  }
}

TEST(Workspaces, AForkWhileAnotherThreadMakesOneIsSafe) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks do not survive a fork while other threads run";
#endif
  WorkspacePool<SlowWorkspace> pool;
  const auto borrow = [&] { const WorkspacePool<SlowWorkspace>::Borrowed work(pool); };
  during(borrow, [&] {
    EXPECT_TRUE(ends_in_a_child([&] {
      wait_for_release = false;
      borrow();
    }));
  });
}

std::shared_ptr<Encoding> slow_encoding() {
  make_slowly();
  return std::make_shared<None>(NoneConfig{.heads = 1, .head_dim = 4});
}

TEST(ProjectedEncodings, AForkWhileAnotherThreadMakesThemIsSafe) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks do not survive a fork while other threads run";
#endif
  const ProjectedEncodings encodings({slow_encoding}, 10'000);
  for (const int64_t distance : {int64_t{100}, ProjectedEncodings::kMostKept + 1})
    during([&] { encodings.get(distance, 0); },
           [&] {
             EXPECT_TRUE(ends_in_a_child([&] {
               wait_for_release = false;
               if (encodings.get(distance, 0)->size() != 1) _exit(1);
             }));
           });
}

TEST(ProjectedEncodings, AreKeptUntilLargerOnesAreNeeded) {
  int made = 0;
  const ProjectedEncodings encodings({[&] {
                                       ++made;
                                       return slow_encoding();
                                     }},
                                     10'000);
  const auto first = encodings.get(100, 0);
  EXPECT_EQ(encodings.get(128, 0), first);
  EXPECT_EQ(encodings.get(0, 0), first);
  EXPECT_EQ(made, 1);
  const auto both = encodings.get(10, 10);
  EXPECT_NE(both, first);
  EXPECT_EQ(encodings.get(128, 128), both);
  EXPECT_EQ(made, 2);
}

TEST(ProjectedEncodings, AFailureLeavesTheSmallerOnesSmall) {
  int made = 0;
  bool fails = false;
  const ProjectedEncodings encodings({[&] {
                                       ++made;
                                       if (fails) throw std::runtime_error("no memory");
                                       return slow_encoding();
                                     }},
                                     10'000);
  const auto small = encodings.get(100, 0);
  fails = true;
  EXPECT_THROW(encodings.get(1000, 0), std::runtime_error);
  fails = false;
  EXPECT_EQ(encodings.get(100, 0), small);
  EXPECT_NE(encodings.get(1000, 0), small) << "the tables of distance 100 passed for those of 1000";
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace locant
