// The pool in short: every parallel_for is a Job on its caller's stack, listed in the pool's Crew
// until its caller finds no more to do. The caller works on its own job as worker 0; thread t of
// the crew joins whichever job has work left as worker t + 1. So worker numbers are per job, two
// callers never wait for each other, and a parallel_for inside a body runs inline, as worker 0 of a
// job of its own.
#include "locant/core/executor.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "locant/core/error.h"

namespace locant::inline v0 {
namespace {

using Body = std::function<void(int64_t, int)>;

constexpr int kMaxThreads = 4096;

// A blocked thread takes tens of microseconds to wake, so threads look around before they block: for
// a moment without letting go of their core, then as long as those who finish first wait for the
// last in a call of a few milliseconds, but behind any other thread that wants the core.
constexpr std::chrono::microseconds kSpin{20}, kLinger{200};

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Condition>
void spin_until(const Condition& condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited >= kLinger) return;
    if (waited < kSpin)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

// True while this thread runs a body: a nested parallel_for must not wait for the crew it is part
// of.
thread_local bool inside_body = false;

// The indices that a worker takes first. On a cache line of its own.
struct alignas(64) Range {
  std::atomic<int64_t> next{0};  // the first that nobody has taken
  int64_t end = 0;

  bool has_work() const { return next.load(std::memory_order_relaxed) < end; }
};

// Each worker has a range of the indices, and helps with the others' after that. So from call to call
// a worker gets the same part of the rows, and finds much of it in its own cache.
struct Job {
  Job(int64_t indices, int workers, const Body& work)
      : count(indices), body(work), ranges(static_cast<size_t>(workers)) {
    for (int64_t w = 0; w < workers; ++w) {
      ranges[static_cast<size_t>(w)].next.store(count * w / workers, std::memory_order_relaxed);
      ranges[static_cast<size_t>(w)].end = count * (w + 1) / workers;
    }
  }

  const int64_t count;
  const Body& body;
  std::vector<Range> ranges;         // one for each worker
  std::atomic<int> helpers{0};       // crew threads at work on it; changed under the crew's mutex
  std::condition_variable finished;  // helpers is 0
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written once, by whoever turned `failed` on

  bool has_work() const {
    return std::any_of(ranges.begin(), ranges.end(), [](const Range& r) { return r.has_work(); });
  }

  void run(int worker) {
    inside_body = true;
    try {
      for (size_t n = 0; n < ranges.size(); ++n) {
        Range& range = ranges[(static_cast<size_t>(worker) + n) % ranges.size()];
        while (range.has_work()) {
          const int64_t index = range.next.fetch_add(1, std::memory_order_relaxed);
          if (index < range.end) body(index, worker);
        }
      }
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
      for (Range& range : ranges) range.next.store(range.end, std::memory_order_relaxed);
    }
    inside_body = false;
  }
};

// Counts forks on the way from the first process to this one: a Crew made before the last fork has
// no threads here, and its mutex may be locked for ever.
std::atomic<uint64_t> fork_generation{0};

// The threads of a pool, and the jobs they may join.
class Crew {
 public:
  Crew(int threads, Crew* orphaned)
      : generation(fork_generation.load()), orphaned_(orphaned), wanted_(threads) {
    threads_.reserve(wanted_);
  }

  ~Crew() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(Job& job) {
    int sleepers = 0;
    {
      std::lock_guard lock(mutex_);
      start_threads();
      jobs_.push_back(&job);
      posted_.fetch_add(1, std::memory_order_release);
      sleepers = sleeping_;
    }
    // The caller takes one index itself.
    for (int64_t n = std::min<int64_t>(sleepers, job.count - 1); n > 0; --n) wake_.notify_one();
    job.run(0);
    spin_until([&] { return job.helpers.load(std::memory_order_acquire) == 0; });
    // Once the job is off the list nobody can join it, and the last helper leaves under this mutex.
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    job.finished.wait(lock, [&] { return job.helpers.load(std::memory_order_relaxed) == 0; });
  }

  const uint64_t generation;

 private:
  // Called with the mutex held. A system that refuses threads leaves the pool with fewer.
  void start_threads() {
    if (started_) return;
    started_ = true;
    try {
      for (int t = 0; t < wanted_; ++t) threads_.emplace_back([this, t] { serve(t + 1); });
    } catch (const std::system_error&) {
    }
  }

  // The listed job with work left and the fewest helpers; null if there is none.
  Job* neediest() const {
    Job* best = nullptr;
    for (Job* job : jobs_) {
      if (!job->has_work()) continue;
      if (best == nullptr || job->helpers.load() < best->helpers.load()) best = job;
    }
    return best;
  }

  void serve(int worker) {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (Job* job = neediest()) {
        job->helpers.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        job->run(worker);
        lock.lock();
        if (job->helpers.fetch_sub(1, std::memory_order_release) == 1) job->finished.notify_one();
        continue;
      }
      const uint64_t seen = posted_.load(std::memory_order_relaxed);
      lock.unlock();
      spin_until([&] { return posted_.load(std::memory_order_acquire) != seen; });
      lock.lock();
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_ || posted_.load(std::memory_order_relaxed) != seen; });
      --sleeping_;
    }
  }

  // After a fork: the parent's crew, out of use. Kept reachable, never destroyed.
  [[maybe_unused]] Crew* const orphaned_;
  const int wanted_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> posted_{0};  // jobs so far
  int sleeping_ = 0;
  bool started_ = false;
  bool stop_ = false;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
};

class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(int threads) : threads_(threads) {}

  ~ThreadPool() override {
    Crew* crew = crew_.load();
    if (crew != nullptr && crew->generation == fork_generation.load()) delete crew;
  }

  int concurrency() const override { return threads_; }

  void parallel_for(int64_t count, const Body& body) override {
    // A single body leaves the crew free, so it may use parallel_for itself.
    if (threads_ == 1 || count <= 1 || inside_body) {
      for (int64_t index = 0; index < count; ++index) body(index, 0);
      return;
    }
    Job job(count, threads_, body);
    crew().run(job);
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  // This process's crew. No mutex here: one held by another thread during fork would stay locked.
  Crew& crew() {
    Crew* current = crew_.load(std::memory_order_acquire);
    while (current == nullptr || current->generation != fork_generation.load()) {
      auto fresh = std::make_unique<Crew>(threads_ - 1, current);
      if (crew_.compare_exchange_strong(current, fresh.get())) return *fresh.release();
    }
    return *current;
  }

  const int threads_;
  std::atomic<Crew*> crew_{nullptr};
};

void check_threads(int threads) {
  require(threads >= 1, "threads", "the number of threads must be >= 1, got ", threads);
  require(threads <= kMaxThreads, "threads", "the number of threads must be <= ", kMaxThreads,
          ", got ", threads);
}

// LOCANT_NUM_THREADS, or the CPUs this process may run on.
int default_threads() {
  if (const char* text = std::getenv("LOCANT_NUM_THREADS"); text != nullptr && *text != '\0') {
    int threads = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, threads);
    require(error == std::errc() && stop == end && threads >= 1 && threads <= kMaxThreads,
            "threads", "LOCANT_NUM_THREADS must be an integer from 1 to ", kMaxThreads, ", got '",
            text, "'");
    return threads;
  }
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return std::clamp(CPU_COUNT(&allowed), 1, kMaxThreads);
#endif
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

// The executor of all calls. Ready before any code runs, so that no fork can meet it half made, and
// never destroyed, as threads may still call while the process exits.
constinit std::mutex current_mutex;
constinit std::shared_ptr<Executor>* current = nullptr;

// The mutex is held across fork: the child must not inherit it locked by a thread it lacks.
[[maybe_unused]] const int fork_handlers =
    pthread_atfork([] { current_mutex.lock(); }, [] { current_mutex.unlock(); },
                   [] {
                     fork_generation.fetch_add(1);
                     current_mutex.unlock();
                   });

}  // namespace

std::shared_ptr<Executor> make_thread_pool(int threads) {
  check_threads(threads);
  return std::make_shared<ThreadPool>(threads);
}

std::shared_ptr<Executor> executor() {
  std::lock_guard lock(current_mutex);
  if (current == nullptr)
    current = new std::shared_ptr<Executor>(std::make_shared<ThreadPool>(default_threads()));
  return *current;
}

void set_executor(std::shared_ptr<Executor> executor) {
  require(executor != nullptr, "threads", "the executor must not be null");
  require(executor->concurrency() >= 1, "threads", "the executor's concurrency must be >= 1, got ",
          executor->concurrency());
  // The old one, if nobody uses it any more, ends with `executor`: after the lock, as a pool joins
  // its threads.
  std::lock_guard lock(current_mutex);
  if (current == nullptr) current = new std::shared_ptr<Executor>;
  current->swap(executor);
}

void set_num_threads(int threads) {
  set_executor(make_thread_pool(threads));
}

int num_threads() {
  return executor()->concurrency();
}

}  // namespace locant::inline v0
