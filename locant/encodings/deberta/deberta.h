// Disentangled attention (He et al. 2021): DeBERTa v1 (exact distances) and v2/v3 (log buckets).
//
//   S[i,j] = s·( <q_i, k_j> + <q_i, PK[slot]> + <k_j, PQ[slot]> + <PQ[slot], PK[slot]> )
//                content      c2p              p2c              p2p
//   s      = 1/sqrt(d·f),  f = 1 + the number of enabled terms unless scale_factor is set
//   slot   = clamp(B(r) + S, 0, 2S - 1),  r = pos(i) - pos(j)
//   B(r)   = r if position_buckets = 0; else log buckets:  |r| <= mid -> r, else
//            sign(r)·(mid + ceil(ln(|r|/mid) / ln((M-1)/mid)·(mid-1)))
//   S      = position_buckets if > 0, else M;  M = max_relative_positions;  mid = buckets / 2
//
//   pos_key PK, pos_query PQ: (heads, 2S, d), the relative table after its projections
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct DebertaConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t position_buckets = 256;        // 0: exact distances (v1)
  int64_t max_relative_positions = 512;  // M
  bool c2p = true;
  bool p2c = true;
  bool p2p = false;
  std::string far = "hf";    // |r| >= M: "hf" goes on bucketing, "clamp" holds r at ±(M-1)
  int64_t scale_factor = 0;  // f; 0: 1 + the number of enabled terms
};

class LOCANT_API Deberta final : public Encoding {
 public:
  static constexpr const char* kName = "deberta";
  static constexpr const char* kClassName = "Deberta";
  static constexpr const char* kSummary = "disentangled attention: content and position apart";
  static const Fields<DebertaConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Deberta(const DebertaConfig& config);

  // The distance from which all slots are the same: the encoding keeps a number for each nearer
  // one.
  static int64_t reach(const DebertaConfig& config);

  const DebertaConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  OffsetBias position_to_position(double scale) const;
  void pull_back_position_to_position(double scale, const BiasGradient& dbias,
                                      ParameterGradients& gradients) const;

  DebertaConfig config_;
  double scale_ = 1;  // s
  // Slots fall as the offset pos(j) - pos(i) = -r grows; maps must not, so this one holds
  // 2S - 1 - slot and goes with tables whose rows are reversed.
  RowMap map_;
};

}  // namespace locant::inline v0
