#include "locant/encodings/sinusoidal/sinusoidal.h"

#include <cmath>
#include <utility>

namespace locant::inline v0 {
namespace {

SinusoidalConfig checked(SinusoidalConfig config) {
  config = with_dim(Sinusoidal::kName, std::move(config));
  require(config.layout == "interleaved" || config.layout == "split" ||
              config.layout == "tensor2tensor",
          Sinusoidal::kName, "layout must be one of interleaved, split, tensor2tensor, got '",
          config.layout, "'");
  require(config.base >= 1 && std::isfinite(config.base), Sinusoidal::kName,
          "base must be >= 1 and finite, got ", config.base);
  require(config.layout != "tensor2tensor" || config.dim >= 4, Sinusoidal::kName,
          "layout tensor2tensor divides by D/2 - 1: dim must be >= 4, got ", config.dim);
  return config;
}

// θ_t of every pair of a sine and a cosine.
std::vector<double> frequencies_of(const SinusoidalConfig& config) {
  const bool tensor2tensor = config.layout == "tensor2tensor";
  const int64_t pairs = tensor2tensor ? config.dim / 2 : (config.dim + 1) / 2;
  const double last = tensor2tensor ? static_cast<double>(pairs - 1)  // θ there is 1/base
                                    : static_cast<double>(config.dim) / 2;
  std::vector<double> theta(pairs);
  for (int64_t t = 0; t < pairs; ++t)
    theta[t] = std::pow(config.base, -static_cast<double>(t) / last);
  return theta;
}

template <class Real, class UseRow>
void each_sinusoid(const SinusoidalConfig& config, const Phasors& phasors,
                   std::span<const int64_t> positions, const UseRow& use) {
  const int64_t pairs = phasors.pairs();
  const bool interleaved = config.layout == "interleaved";
  Phasors::Walk walk(phasors);
  // One channel more than D: the cosine that an odd width leaves out, or the zero that it ends
  // with.
  std::vector<Real> row(2 * pairs + 1);
  std::vector<Real> sine(interleaved ? pairs : 0), cosine(sine.size());
  for (size_t n = 0; n < positions.size(); ++n) {
    if (config.padding_idx >= 0 && positions[n] == config.padding_idx) {
      row.assign(row.size(), 0);
    } else if (interleaved) {
      walk.row(positions[n], cosine.data(), sine.data());
      for (int64_t t = 0; t < pairs; ++t) {
        row[2 * t] = sine[t];
        row[2 * t + 1] = cosine[t];
      }
    } else {
      walk.row(positions[n], &row[pairs], row.data());
    }
    use(static_cast<int64_t>(n), row.data());
  }
}

}  // namespace

const Fields<SinusoidalConfig>& Sinusoidal::description() {
  static const Fields<SinusoidalConfig> fields{
      kName,
      {
          field("heads", &SinusoidalConfig::heads, "query heads"),
          field("head_dim", &SinusoidalConfig::head_dim, "width d of a head"),
          field("dim", &SinusoidalConfig::dim, "width D of the input; 0: heads·head_dim"),
          field("layout", &SinusoidalConfig::layout, "order of sines and cosines",
                {"interleaved", "split", "tensor2tensor"}),
          field("base", &SinusoidalConfig::base, "wavelengths go from 2π to about 2π·base"),
          field("padding_idx", &SinusoidalConfig::padding_idx,
                "-1: count from 0; else count real tokens from padding_idx + 1"),
      }};
  return fields;
}

Sinusoidal::Sinusoidal(const SinusoidalConfig& config)
    : Absolute(kName, checked(config), {}),
      config_(checked(config)),
      phasors_(frequencies_of(config_)) {}

void Sinusoidal::each_row(std::span<const int64_t> positions, const UseRow<float>& use) const {
  each_sinusoid<float>(config_, phasors_, positions, use);
}
void Sinusoidal::each_row(std::span<const int64_t> positions, const UseRow<double>& use) const {
  each_sinusoid<double>(config_, phasors_, positions, use);
}

}  // namespace locant::inline v0
