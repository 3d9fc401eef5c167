// Attention with linear biases (Press et al. 2022): a penalty that grows with the distance.
//
//   S[i,j] = <q_i, k_j>/sqrt(d) - slope_h·|pos(j) - pos(i)|
//
// With Hp the largest power of two <= heads, the first Hp slopes are 2^(-8h/Hp), h = 1..Hp; the
// remaining heads take the 1st, 3rd, 5th, ... slope of 2·Hp heads.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct AlibiConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  std::vector<double> slopes;  // (heads), or empty: the paper's
};

class LOCANT_API Alibi final : public Encoding {
 public:
  static constexpr const char* kName = "alibi";
  static constexpr const char* kClassName = "Alibi";
  static constexpr const char* kSummary =
      "a penalty linear in the distance: -slope·|pos(j)-pos(i)|";
  static const Fields<AlibiConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Alibi(const AlibiConfig& config);

  const AlibiConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  AlibiConfig config_;
  OffsetBias bias_;  // 0 at offset 0, and a slope on either side
};

}  // namespace locant::inline v0
