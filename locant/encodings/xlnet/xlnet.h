// XLNet (Yang et al. 2019): Transformer-XL's terms in both directions, and relative segments.
//
//   S[i,j] = (<q_i + u, k_j> + <q_i + v, W_R·R_r> + <q_i + s, seg_embed[x]>) / sqrt(d)
//            content           position             segment, if the call has segments
//   r      = clamp(pos(i) - pos(j), -clamp_len, clamp_len);  clamp_len <= 0: not clamped
//   R_r    = [sin(r·θ_t) | cos(r·θ_t)],  θ_t = 10000^(-2t/d_model)
//   x      = 0 if i and j are of the same segment, else 1
//
//   u r_w_bias, v r_r_bias, s r_s_bias: (heads, d)
//   W_R r: (d_model, heads, d);  seg_embed: (2, heads, d)        as checkpoints store them
//
// The memory is keys and values before the queries, in segment 0. Two streams: layers/two_stream.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "locant/encodings/encoding.h"
#include "locant/encodings/relative_sinusoid.h"

namespace locant::inline v0 {

struct XLNetConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t d_model = 0;           // width of R; 0: heads·head_dim
  int64_t clamp_len = -1;        // distances beyond it count as it, both ways; <= 0: off
  std::string attn_type = "bi";  // "uni": for causal calls; r < 0 counts as 0
};

class LOCANT_API XLNet final : public Encoding {
 public:
  static constexpr const char* kName = "xlnet";
  static constexpr const char* kClassName = "XLNet";
  static constexpr const char* kSummary = "Transformer-XL's terms both ways, relative segments";
  static const Fields<XLNetConfig>& description();
  static std::vector<FieldValues> cases();

  // same_length: AttendOptions::window_left with which, besides causal, every query sees `memory`
  // keys before it.
  static int64_t same_length_window(int64_t memory);

  explicit XLNet(const XLNetConfig& config);

  const XLNetConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  bool uses_segments() const override { return true; }
  void project(int64_t first_offset, int64_t last_offset) override;
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  void parameter_changed(const std::string& name) override;

  XLNetConfig config_;
  RelativeSinusoid sinusoid_;
};

}  // namespace locant::inline v0
