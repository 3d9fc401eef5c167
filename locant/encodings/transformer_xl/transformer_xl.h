// Transformer-XL (Dai et al. 2019): relative positions by projected sinusoids, and memory.
//
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r>) / sqrt(d)
//            content           position
//   r      = min(pos(i) - pos(j), clamp_len);  clamp_len <= 0: not clamped
//   R_r    = [sin(r·θ_t) | cos(r·θ_t)],  θ_t = 10000^(-2t/d_model)
//
//   u r_w_bias (heads, d);  v r_r_bias (heads, d);  W_R r_net (heads·d, d_model)
//
// The memory is keys and values before the queries: k_len = memory + q_len, q_start = memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "locant/encodings/encoding.h"
#include "locant/encodings/relative_sinusoid.h"

namespace locant::inline v0 {

struct TransformerXLConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t d_model = 0;     // width of R; 0: heads·head_dim
  int64_t clamp_len = -1;  // distances beyond it count as it; <= 0: off
};

class LOCANT_API TransformerXL final : public Encoding {
 public:
  static constexpr const char* kName = "transformer_xl";
  static constexpr const char* kClassName = "TransformerXL";
  static constexpr const char* kSummary = "projected sinusoids of the distance, u and v, memory";
  static const Fields<TransformerXLConfig>& description();
  static std::vector<FieldValues> cases();

  // same_length: AttendOptions::window_left with which, besides causal, every query sees as many
  // keys as the last one may: min(mem_len, memory + q_len). `memory` keys stand before the queries;
  // mem_len is the model's setting.
  static int64_t same_length_window(int64_t q_len, int64_t memory, int64_t mem_len);

  explicit TransformerXL(const TransformerXLConfig& config);

  const TransformerXLConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  void project(int64_t first_offset, int64_t last_offset) override;
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  void parameter_changed(const std::string& name) override;

  TransformerXLConfig config_;
  RelativeSinusoid sinusoid_;
};

}  // namespace locant::inline v0
