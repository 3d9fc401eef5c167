#include "locant/models/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "locant/core/error.h"
#include "locant/terms/dropout.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "generate";

// Uniform in [0, 1): the counter-based generator of attention dropout (terms/dropout.h), keyed by
// other numbers.
double uniform(uint64_t seed, int64_t sequence, int64_t step) {
  const DropoutRow bits = dropout_row(seed, sequence, 0, step);
  const uint64_t all = uint64_t{bits.b} << 32 | bits.a;
  return static_cast<double>(all >> 11) * 0x1p-53;
}

// The place of the largest logit, the first of equals.
size_t largest(std::span<const float> logits) {
  size_t best = 0;
  for (size_t n = 0; n < logits.size(); ++n) {
    require(!std::isnan(logits[n]), kScope, "the logit of token ", n,
            " is NaN: the checkpoint has weights that are not finite or too large");
    if (logits[n] > logits[best]) best = n;
  }
  require(std::isfinite(logits[best]), kScope, "the largest logit is ", logits[best],
          ": the checkpoint has weights that are not finite or too large");
  return best;
}

// The fewest tokens that hold top_p of `total`, likeliest first, ties by number.
std::vector<size_t> nucleus(const std::vector<double>& weights, double total, double top_p) {
  // Tokens below this hold together less than 1 - top_p: they need not be sorted.
  const double least = (1 - top_p) * total / static_cast<double>(weights.size());
  std::vector<size_t> kept;
  for (size_t n = 0; n < weights.size(); ++n)
    if (weights[n] >= least) kept.push_back(n);
  std::stable_sort(kept.begin(), kept.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  double held = 0;
  for (size_t n = 0; n < kept.size(); ++n) {
    held += weights[kept[n]];
    if (held >= top_p * total) {
      kept.resize(n + 1);
      break;
    }
  }
  return kept;
}

void check(const GenerateOptions& options, int64_t vocab_size) {
  require(options.max_new_tokens >= 1, kScope, "max_new_tokens must be >= 1, got ",
          options.max_new_tokens);
  require(std::isfinite(options.temperature) && options.temperature >= 0, kScope,
          "temperature must be finite and >= 0, got ", options.temperature);
  require(options.top_p > 0 && options.top_p <= 1, kScope, "top_p must be > 0 and <= 1, got ",
          options.top_p);
  for (size_t n = 0; n < options.stop.size(); ++n)
    require(options.stop[n] >= kNeverStop && options.stop[n] < vocab_size, kScope, "stop[", n,
            "] is ", options.stop[n], " but must be from 0 to ", vocab_size - 1);
}

}  // namespace

int64_t sample(std::span<const float> logits, const GenerateOptions& options, int64_t sequence,
               int64_t step) {
  const size_t best = largest(logits);
  if (options.temperature == 0) return static_cast<int64_t>(best);
  std::vector<double> weights(logits.size());
  double total = 0;
  for (size_t n = 0; n < logits.size(); ++n) {
    weights[n] = std::exp((static_cast<double>(logits[n]) - logits[best]) / options.temperature);
    total += weights[n];
  }
  std::vector<size_t> kept;
  if (options.top_p < 1) {
    kept = nucleus(weights, total, options.top_p);
    total = 0;
    for (const size_t n : kept) total += weights[n];
  } else {
    kept.resize(weights.size());
    std::iota(kept.begin(), kept.end(), size_t{0});
  }
  double left = uniform(options.seed, options.first_sequence + sequence, step) * total;
  size_t drawn = best;  // if rounding leaves nothing at the end
  for (const size_t n : kept) {
    left -= weights[n];
    if (left < 0) {
      drawn = n;
      break;
    }
  }
  return static_cast<int64_t>(drawn);
}

std::vector<int64_t> stop_tokens_of(const Config& config, int64_t vocab_size) {
  constexpr const char* kKey = "eos_token_id";
  const auto generation = config.beside("generation_config.json");
  const Config& source = generation && generation->has(kKey) ? *generation : config;
  if (!source.has(kKey)) return {};
  if (!source.is_list(kKey)) return {source.integer(kKey, kNeverStop, vocab_size - 1)};
  std::vector<int64_t> out;
  for (const double number : source.numbers(kKey)) {
    if (!(number >= 0 && number < static_cast<double>(vocab_size) && number == std::floor(number)))
      source.reject(kKey, "must hold token ids from 0 to " + std::to_string(vocab_size - 1));
    out.push_back(static_cast<int64_t>(number));
  }
  return out;
}

Generation::Generation(const GenerateOptions& options, std::vector<int64_t> stop, int64_t sequences,
                       int64_t vocab_size)
    : options_(options),
      stop_(options.stop.empty() ? std::move(stop) : options.stop),
      live_(static_cast<size_t>(sequences)),
      tokens_(static_cast<size_t>(sequences)) {
  check(options, vocab_size);
  std::iota(live_.begin(), live_.end(), 0);
}

bool Generation::ends(int64_t sequence, int64_t token) const {
  const bool goes_on = !options_.on_token || options_.on_token(sequence, token);
  return !goes_on || std::find(stop_.begin(), stop_.end(), token) != stop_.end() ||
         static_cast<int64_t>(tokens_[sequence].size()) >= options_.max_new_tokens;
}

void Generation::step(const ConstView& logits) {
  std::vector<int64_t> live;
  for (size_t row = 0; row < live_.size(); ++row) {
    const int64_t n = live_[row];
    const std::span<const float> values(logits.at<float>(static_cast<int64_t>(row)),
                                        static_cast<size_t>(logits.shape[1]));
    const int64_t token = sample(values, options_, n, static_cast<int64_t>(tokens_[n].size()));
    tokens_[n].push_back(token);
    if (!ends(n, token)) live.push_back(n);
  }
  live_ = std::move(live);
}

}  // namespace locant::inline v0
