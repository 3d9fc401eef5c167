#include "locant/core/executor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/message_of.h"

namespace locant {
namespace {

using std::chrono::milliseconds;

void sleep_a_little() {
  std::this_thread::sleep_for(milliseconds(1));
}

class ThreadPools : public testing::TestWithParam<int> {
 protected:
  std::shared_ptr<Executor> pool = make_thread_pool(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPools, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPools, EveryIndexRunsExactlyOnce) {
  EXPECT_EQ(pool->concurrency(), GetParam());
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    pool->parallel_for(count, [&](int64_t index, int) { ++runs[index]; });
    for (int64_t n = 0; n < count; ++n) ASSERT_EQ(runs[n], 1) << n << " of " << count;
  }
}

TEST_P(ThreadPools, WritesOfBodiesAreVisibleToTheCaller) {
  std::vector<int64_t> squares(500);
  for (int round = 0; round < 50; ++round) {
    pool->parallel_for(500, [&](int64_t n, int) { squares[n] = n * n + round; });
    for (int64_t n = 0; n < 500; ++n) ASSERT_EQ(squares[n], n * n + round);
  }
}

TEST_P(ThreadPools, BodiesThatRunAtOnceHaveDifferentWorkerNumbers) {
  std::vector<std::atomic<int>> busy(GetParam());
  std::atomic<bool> shared{false};
  pool->parallel_for(64, [&](int64_t, int worker) {
    ASSERT_GE(worker, 0);
    ASSERT_LT(worker, GetParam());
    if (busy[worker]++ != 0) shared = true;
    sleep_a_little();
    --busy[worker];
  });
  EXPECT_FALSE(shared);
}

TEST_P(ThreadPools, ThreadsReallyWorkTogether) {
  // Each body waits for all the others: only GetParam() threads at once can end this.
  const int64_t threads = GetParam();
  std::atomic<int64_t> arrived{0};
  pool->parallel_for(threads, [&](int64_t, int) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, threads);
}

TEST_P(ThreadPools, WorkersBeginWithTheirOwnPartOfTheIndices) {
  // Every body waits until each worker has one, so nobody can help anybody before.
  const int64_t threads = GetParam(), each = 5;
  std::atomic<int64_t> arrived{0};
  std::vector<std::atomic<int64_t>> first(threads);
  for (auto& index : first) index = -1;
  pool->parallel_for(threads * each, [&](int64_t index, int worker) {
    if (first[worker] >= 0) return;
    first[worker] = index;
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
  for (int64_t worker = 0; worker < threads; ++worker) EXPECT_EQ(first[worker], worker * each);
}

TEST_P(ThreadPools, AnExceptionReachesTheCallerAfterTheOthersEnded) {
  std::atomic<int> running{0};
  const auto call = [&] {
    pool->parallel_for(100, [&](int64_t index, int) {
      ++running;
      sleep_a_little();
      --running;
      if (index == 5) throw std::runtime_error("body 5");
    });
  };
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "body 5");
    EXPECT_EQ(running, 0);
  }
  // And the pool still works.
  std::atomic<int> sum{0};
  pool->parallel_for(10, [&](int64_t index, int) { sum += static_cast<int>(index); });
  EXPECT_EQ(sum, 45);
}

TEST_P(ThreadPools, NestedCallsRunInlineAsWorkerZero) {
  std::atomic<int> inner{0}, elsewhere{0};
  pool->parallel_for(8, [&](int64_t, int) {
    const auto self = std::this_thread::get_id();
    pool->parallel_for(5, [&](int64_t, int worker) {
      ++inner;
      if (worker != 0 || std::this_thread::get_id() != self) ++elsewhere;
    });
  });
  EXPECT_EQ(inner, 40);
  EXPECT_EQ(elsewhere, 0);
}

TEST_P(ThreadPools, ManyCallersAtOnceEachGetTheirOwnResult) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int64_t caller = 0; caller < 6; ++caller)
    callers.emplace_back([&, caller] {
      std::vector<int64_t> out(97);
      for (int64_t round = 0; round < 40; ++round) {
        pool->parallel_for(97, [&](int64_t n, int) { out[n] = caller * 1000 + round + n; });
        for (int64_t n = 0; n < 97; ++n)
          if (out[n] != caller * 1000 + round + n) ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPools, ACallerDoesNotWaitForAnotherCallersJob) {
  std::atomic<bool> release{false};
  std::atomic<int> blocked{0};
  const int threads = GetParam();
  std::thread slow([&] {
    // Takes every thread of the pool, and keeps it.
    pool->parallel_for(threads, [&](int64_t, int) {
      ++blocked;
      while (!release) sleep_a_little();
    });
  });
  while (blocked < 1) sleep_a_little();
  int64_t sum = 0;
  std::mutex mutex;
  pool->parallel_for(10, [&](int64_t n, int) {
    std::lock_guard lock(mutex);
    sum += n;
  });
  EXPECT_EQ(sum, 45);
  EXPECT_FALSE(release);
  release = true;
  slow.join();
}

TEST_P(ThreadPools, AForkedChildComputesWithThreadsOfItsOwn) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks do not survive a fork while other threads run";
#endif
  std::atomic<int64_t> sum{0};
  pool->parallel_for(100, [&](int64_t n, int) { sum += n; });
  ASSERT_EQ(sum, 4950);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a child that hangs must not hang the test
    std::atomic<int64_t> arrived{0};
    const int64_t threads = GetParam();
    pool->parallel_for(threads, [&](int64_t, int) {
      ++arrived;
      while (arrived < threads) std::this_thread::yield();
    });
    std::atomic<int64_t> global{0};
    executor()->parallel_for(100, [&](int64_t n, int) { global += n; });
    _exit(arrived == threads && global == 4950 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  sum = 0;
  pool->parallel_for(100, [&](int64_t n, int) { sum += n; });
  EXPECT_EQ(sum, 4950);
}

TEST(ThreadPool, ForksDuringCallsOfOtherThreadsAreSafe) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks do not survive a fork while other threads run";
#endif
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) executor()->parallel_for(16, [](int64_t, int) {});
  });
  int failures = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      std::atomic<int64_t> sum{0};
      executor()->parallel_for(10, [&](int64_t n, int) { sum += n; });
      _exit(sum == 45 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failures;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(failures, 0);
}

TEST(ThreadPool, IdleThreadsSleep) {
  const auto pool = make_thread_pool(8);
  pool->parallel_for(64, [](int64_t, int) { sleep_a_little(); });
  sleep_a_little();
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(used, 0.05);
}

TEST(NumThreads, SetsTheExecutorOfAllCalls) {
  const int before = num_threads();
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
  EXPECT_EQ(executor()->concurrency(), 3);
  set_num_threads(before);
  EXPECT_EQ(num_threads(), before);
}

TEST(NumThreads, LessThanOneIsRefusedByName) {
  const int before = num_threads();
  for (const int threads : {0, -4}) {
    try {
      set_num_threads(threads);
      FAIL() << threads << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(),
                "[threads] the number of threads must be >= 1, got " + std::to_string(threads));
    }
  }
  EXPECT_EQ(num_threads(), before);
  EXPECT_THROW(set_executor(nullptr), std::invalid_argument);
}

TEST(NumThreads, ACallUnderWayKeepsItsPool) {
  const int before = num_threads();
  set_num_threads(2);
  std::atomic<int> sum{0};
  executor()->parallel_for(20, [&](int64_t n, int) {
    if (n == 3) set_num_threads(3);
    sum += static_cast<int>(n);
  });
  EXPECT_EQ(sum, 190);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(before);
}

// An executor of the host: counts what it is given and runs it in reverse.
class Backwards final : public Executor {
 public:
  int concurrency() const override { return 1; }
  void parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) override {
    ++calls;
    for (int64_t n = count - 1; n >= 0; --n) body(n, 0);
  }
  int calls = 0;
};

TEST(SetExecutor, AHostProgramCanBringItsOwn) {
  const auto before = executor();
  const auto own = std::make_shared<Backwards>();
  set_executor(own);
  std::vector<int64_t> order;
  executor()->parallel_for(3, [&](int64_t n, int) { order.push_back(n); });
  set_executor(before);
  EXPECT_EQ(own->calls, 1);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 1, 0}));
}

// An executor that says it has no threads.
class NoThreads final : public Executor {
 public:
  int concurrency() const override { return 0; }
  void parallel_for(int64_t, const std::function<void(int64_t, int)>&) override {}
};

TEST(SetExecutor, OneWithoutThreadsIsRefusedByName) {
  const auto before = executor();
  EXPECT_EQ(message_of([] { set_executor(std::make_shared<NoThreads>()); }),
            "[threads] the executor's concurrency must be >= 1, got 0");
  EXPECT_EQ(executor(), before);
  set_executor(before);
}

}  // namespace
}  // namespace locant
