// Draws of tokens against the probabilities they promise, and the end of sequences.
#include "locant/models/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/message_of.h"
#include "tests/temporary_folder.h"

namespace locant {
namespace {

const std::vector<float> kLogits = {0.3f, 2.0f, -1.0f, 1.1f, 0.9f, -3.0f};

// softmax(logits / temperature)
std::vector<double> probabilities(double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (const float x : kLogits) sum += p.emplace_back(std::exp(x / temperature));
  for (double& x : p) x /= sum;
  return p;
}

std::vector<double> frequencies(const GenerateOptions& options, int draws) {
  std::vector<double> f(kLogits.size());
  for (int n = 0; n < draws; ++n) f[sample(kLogits, options, n % 7, n / 7)] += 1.0 / draws;
  return f;
}

GenerateOptions drawing(double temperature, double top_p) {
  GenerateOptions options;
  options.temperature = temperature;
  options.top_p = top_p;
  options.seed = 42;
  return options;
}

// Of 100 000 draws a frequency is off by more than 5 standard deviations once in a million.
constexpr int kDraws = 100000;
constexpr double kOff = 5 * 0.5 / 316.0;

TEST(Sample, FrequenciesAreTheSoftmaxs) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const auto p = probabilities(temperature), f = frequencies(drawing(temperature, 1), kDraws);
    for (size_t n = 0; n < p.size(); ++n) EXPECT_NEAR(f[n], p[n], kOff) << temperature << " " << n;
  }
}

TEST(Sample, TopPKeepsTheFewestTokensThatHoldIt) {
  // By probability: tokens 1, 3, 4, 0, 2, 5 with 0.473, 0.192, 0.157, 0.086, ...
  const auto p = probabilities(1);
  const struct {
    double top_p;
    std::set<size_t> kept;
  } cases[] = {{0.3, {1}},
               {p[1] - 1e-9, {1}},
               {p[1] + 1e-9, {1, 3}},
               {0.8, {1, 3, 4}},
               {0.999999, {0, 1, 2, 3, 4, 5}}};
  for (const auto& [top_p, kept] : cases) {
    double held = 0;
    for (const size_t n : kept) held += p[n];
    const auto f = frequencies(drawing(1, top_p), kDraws);
    for (size_t n = 0; n < p.size(); ++n)
      EXPECT_NEAR(f[n], kept.contains(n) ? p[n] / held : 0.0, kept.contains(n) ? kOff : 0)
          << top_p << " " << n;
  }
}

TEST(Sample, ADrawIsAFunctionOfSeedSequenceAndStep) {
  GenerateOptions options = drawing(1, 1), shifted = options, other = options;
  shifted.first_sequence = 3;
  other.seed = 43;
  int changed = 0;
  for (int64_t step = 0; step < 200; ++step) {
    const int64_t token = sample(kLogits, options, 5, step);
    EXPECT_EQ(sample(kLogits, options, 5, step), token);
    EXPECT_EQ(sample(kLogits, shifted, 2, step), token);
    changed += sample(kLogits, other, 5, step) != token;
  }
  EXPECT_GT(changed, 50);
}

TEST(Sample, ZeroTemperatureAndTinyOnesTakeTheLargest) {
  for (const double temperature : {0.0, 1e-300, 1e-3})
    for (int64_t step = 0; step < 100; ++step)
      EXPECT_EQ(sample(kLogits, drawing(temperature, 1), 0, step), 1);
  const std::vector<float> equal(5, 2.0f);
  EXPECT_EQ(sample(equal, {}, 0, 0), 0);
}

TEST(Sample, LogitsThatAreNoNumbersAreNamed) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_NE(message_of([] {
              sample(std::vector<float>{1, NAN}, {}, 0, 0);
            }).find("[generate] the logit of token 1 is NaN"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sample(std::vector<float>{1, inf}, {}, 0, 0);
            }).find("the largest logit is inf"),
            std::string::npos);
  EXPECT_EQ(sample(std::vector<float>{-inf, 1}, drawing(1, 0.5), 0, 0), 1);
}

TEST(Generation, SequencesEndByStopTokensLengthOrTheListener) {
  GenerateOptions options;
  options.max_new_tokens = 3;
  options.on_token = [](int64_t sequence, int64_t) { return sequence != 3; };
  Generation generation(options, {2}, 4, 4);
  // Largest: tokens 0, 2, 1 and 3 of sequences 0 to 3.
  const std::vector<float> first = {9, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0, 9};
  generation.step(view(first.data(), {4, 4}));
  EXPECT_EQ(generation.live(), (std::vector<int64_t>{0, 2}));
  const std::vector<float> second = {0, 0, 9, 0, 0, 9, 0, 0};
  generation.step(view(second.data(), {2, 4}));
  EXPECT_EQ(generation.live(), std::vector<int64_t>{2});
  EXPECT_EQ(generation.last(2), 1);
  generation.step(view(first.data(), {1, 4}));
  EXPECT_TRUE(generation.live().empty());
  EXPECT_EQ(generation.take(), (std::vector<std::vector<int64_t>>{{0, 2}, {2}, {1, 1, 0}, {3}}));
}

TEST(Generation, OwnStopTokensReplaceTheCheckpoints) {
  const std::vector<float> logits = {0, 0, 9, 0};
  for (const auto& [stop, ends] :
       {std::pair(std::vector<int64_t>{}, true), std::pair(std::vector<int64_t>{1}, false),
        std::pair(std::vector<int64_t>{1, 2}, true),
        std::pair(std::vector<int64_t>{kNeverStop}, false)}) {
    GenerateOptions options;
    options.stop = stop;
    Generation generation(options, {2}, 1, 4);
    generation.step(view(logits.data(), {1, 4}));
    EXPECT_EQ(generation.live().empty(), ends);
  }
}

TEST(Generation, OptionsAreCheckedByName) {
  const auto message = [](auto&& change) {
    GenerateOptions options;
    change(options);
    return message_of([&] { Generation(options, {}, 1, 10); });
  };
  EXPECT_EQ(message([](auto& o) { o.max_new_tokens = 0; }),
            "[generate] max_new_tokens must be >= 1, got 0");
  EXPECT_EQ(message([](auto& o) { o.temperature = -0.5; }),
            "[generate] temperature must be finite and >= 0, got -0.5");
  EXPECT_EQ(message([](auto& o) { o.temperature = NAN; }),
            "[generate] temperature must be finite and >= 0, got nan");
  EXPECT_EQ(message([](auto& o) { o.top_p = 0; }), "[generate] top_p must be > 0 and <= 1, got 0");
  EXPECT_EQ(message([](auto& o) { o.top_p = 1.5; }),
            "[generate] top_p must be > 0 and <= 1, got 1.5");
  EXPECT_EQ(message([](auto& o) {
              o.stop = {3, 10};
            }),
            "[generate] stop[1] is 10 but must be from 0 to 9");
}

TEST(StopTokens, GenerationConfigComesFirst) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"eos_token_id": 7})");
  const auto read = [&] { return stop_tokens_of(Config::read(folder / "config.json"), 10); };
  EXPECT_EQ(read(), std::vector<int64_t>{7});
  folder.write("generation_config.json", R"({"max_length": 20})");
  EXPECT_EQ(read(), std::vector<int64_t>{7});
  folder.write("generation_config.json", R"({"eos_token_id": [3, 4]})");
  EXPECT_EQ(read(), (std::vector<int64_t>{3, 4}));
  folder.write("generation_config.json", R"({"eos_token_id": [3, 12]})");
  EXPECT_NE(message_of(read).find("eos_token_id must hold token ids from 0 to 9"),
            std::string::npos);
}

}  // namespace
}  // namespace locant
