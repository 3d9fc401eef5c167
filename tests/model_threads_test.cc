// Threads, forks and errors around whole models. (Pools and single calls: executor_test.cc.)
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "locant/core/executor.h"
#include "tests/made_up_checkpoint.h"
#include "tests/message_of.h"

namespace locant {
namespace {

constexpr const char* kBert =
    R"({"model_type":"bert","architectures":["BertForTokenClassification"],"vocab_size":20,
        "hidden_size":16,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":24,
        "max_position_embeddings":64,"type_vocab_size":2})";
constexpr const char* kDeberta =
    R"({"model_type":"deberta-v2","vocab_size":20,"hidden_size":16,"num_hidden_layers":2,
        "num_attention_heads":2,"intermediate_size":24,"max_position_embeddings":32,
        "relative_attention":true,"pos_att_type":["c2p","p2c"],"position_buckets":8,
        "type_vocab_size":0,"position_biased_input":false})";
constexpr const char* kXlnet =
    R"({"model_type":"xlnet","vocab_size":20,"d_model":16,"n_layer":2,"n_head":2,"d_inner":24})";
constexpr const char* kLlama =
    R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":20,"hidden_size":16,
        "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
        "intermediate_size":24,"max_position_embeddings":64})";

std::shared_ptr<const Model> model_of(const char* config) {
  const TemporaryFolder folder;
  folder.write("config.json", config);
  std::string complaint;
  const auto model = MadeUpCheckpoint::load_from(folder, message_of, &complaint);
  EXPECT_NE(model, nullptr) << complaint;
  return model;
}

// Sequences of different lengths; `n` chooses them.
ModelInput input_of(int n) {
  ModelInput input;
  for (int s = 0; s <= n % 3; ++s) {
    std::vector<int64_t>& ids = input.ids.emplace_back();
    for (int i = 0; i < 1 + (7 * n + 11 * s) % 40; ++i) ids.push_back((3 * i + n + s) % 20);
  }
  return input;
}

// Every number of a result.
std::string bytes_of(const ModelOutput& out) {
  std::string all;
  for (const Tensor* x : {&out.last_hidden_state, &out.logits})
    if (*x) all.append(static_cast<const char*>(x->view().data), x->view().size() * sizeof(float));
  return all;
}

class ModelThreads : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    before_ = num_threads();
    model = model_of(GetParam());
    ASSERT_NE(model, nullptr);
    for (int n = 0; n < kInputs; ++n) expected.push_back(bytes_of(model->run(input_of(n))));
  }
  void TearDown() override { set_num_threads(before_); }

  static constexpr int kInputs = 7;
  std::shared_ptr<const Model> model;
  std::vector<std::string> expected;

 private:
  int before_ = 1;
};

TEST_P(ModelThreads, ManyCallersOfOneModelGetTheirOwnBits) {
  std::atomic<int> wrong{0}, refused{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 12; ++round) {
        const int n = (caller + round) % kInputs;
        if (bytes_of(model->run(input_of(n))) != expected[n]) ++wrong;
        // An error of one caller is its own.
        try {
          static_cast<void>(model->run({.ids = {{1, 20}}}));
        } catch (const std::invalid_argument&) {
          ++refused;
        }
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refused, 6 * 12);
}

TEST_P(ModelThreads, ThreadCountsThatChangeDuringCallsChangeNoBit) {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread caller([&] {
    for (int round = 0; round < 40; ++round)
      if (bytes_of(model->run(input_of(round % kInputs))) != expected[round % kInputs]) ++wrong;
    done = true;
  });
  for (int threads = 1; !done; threads = threads % 5 + 1) set_num_threads(threads);
  caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ModelThreads, AForkedChildRunsTheModelOfItsParent) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own locks do not survive a fork of a program with threads";
#endif
  set_num_threads(3);
  static_cast<void>(model->run(input_of(2)));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool same = true;
    for (int n = 0; n < kInputs; ++n)
      same = same && bytes_of(model->run(input_of(n))) == expected[n];
    _exit(same ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(bytes_of(model->run(input_of(0))), expected[0]);
}

// A host's executor, some of whose workers fail.
class Failing final : public Executor {
 public:
  explicit Failing(int64_t at) : at_(at), pool_(make_thread_pool(3)) {}
  int concurrency() const override { return pool_->concurrency(); }
  void parallel_for(int64_t count, const std::function<void(int64_t, int)>& body) override {
    const int64_t call = calls_++;
    pool_->parallel_for(count, [&](int64_t index, int worker) {
      if (call == at_ && index == count / 2) throw std::runtime_error("a worker fails");
      body(index, worker);
    });
  }

 private:
  int64_t at_;
  std::atomic<int64_t> calls_{0};
  std::shared_ptr<Executor> pool_;
};

TEST_P(ModelThreads, AnErrorInAnyWorkerReachesTheCallerAndTheModelGoesOn) {
  const std::shared_ptr<Executor> usual = executor();
  int thrown = 0;
  for (int64_t at = 0; at < 12; ++at) {
    set_executor(std::make_shared<Failing>(at));
    try {
      EXPECT_EQ(bytes_of(model->run(input_of(2))), expected[2]);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "a worker fails");
      ++thrown;
    }
    set_executor(usual);
    EXPECT_EQ(bytes_of(model->run(input_of(2))), expected[2]) << at;
  }
  EXPECT_GT(thrown, 5) << "no worker was asked";
}

std::string family_name(const testing::TestParamInfo<const char*>& family) {
  const char* const names[] = {"Bert", "Deberta", "Xlnet", "Llama"};
  return names[family.index];
}

INSTANTIATE_TEST_SUITE_P(Families, ModelThreads, testing::Values(kBert, kDeberta, kXlnet, kLlama),
                         family_name);

}  // namespace
}  // namespace locant
