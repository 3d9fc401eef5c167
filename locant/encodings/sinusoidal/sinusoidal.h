// Sines and cosines of the position (Vaswani et al. 2017), added to the input.
//
//   interleaved    PE[p, 2i] = sin(p·θ_i)   PE[p, 2i+1] = cos(p·θ_i)     θ_i = base^(-2i/D)
//   split          PE[p] = [sin(p·θ_i) for all i | cos(p·θ_i) for all i]     the same θ
//   tensor2tensor  the same halves with θ_i = base^(-i/(D/2 - 1)), i < D/2
//
// Odd D, as in public code: the last pair has no cosine (interleaved, split); a zero follows
// (tensor2tensor). Positions are any integers: there is no table and no maximum. Angles are
// float64. With padding_idx >= 0, PE[padding_idx] = 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "locant/core/api.h"
#include "locant/encodings/absolute.h"
#include "locant/encodings/phasor.h"

namespace locant::inline v0 {

struct SinusoidalConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t dim = 0;                     // D, the width of the input; 0: heads·head_dim
  std::string layout = "interleaved";  // or "split", "tensor2tensor"
  double base = 10000;
  int64_t padding_idx = -1;  // -1: every row counts; else fairseq's rule, see absolute.h
};

class LOCANT_API Sinusoidal final : public Absolute {
 public:
  static constexpr const char* kName = "sinusoidal";
  static constexpr const char* kClassName = "Sinusoidal";
  static constexpr const char* kSummary = "sines and cosines of the position, added to the input";
  static const Fields<SinusoidalConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Sinusoidal(const SinusoidalConfig& config);

  const SinusoidalConfig& config() const { return config_; }  // dim is never 0 here
  FieldValues fields() const override { return description().dump(config_); }

 private:
  void check_position(int64_t) const override {}
  void each_row(std::span<const int64_t> positions, const UseRow<float>& use) const override;
  void each_row(std::span<const int64_t> positions, const UseRow<double>& use) const override;
  void pull_back_rows(std::span<const int64_t>, const ConstView&, int64_t, int64_t,
                      ParameterGradients&) const override {}  // nothing is learned
  double reference_element(int64_t position, int64_t channel) const override;

  SinusoidalConfig config_;
  Phasors phasors_;  // e^{iθ_t·p}
};

}  // namespace locant::inline v0
