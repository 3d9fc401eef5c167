// KERPLE's logarithmic kernel (Chi et al. 2022): a learned penalty that grows with the logarithm of
// the distance.
//
//   S[i,j] = <q_i, k_j>/sqrt(d) - r1_h·ln(1 + r2_h·|pos(j) - pos(i)|),   r1, r2 (heads)
//
// Both are positive: values below 0.01 count as 0.01, as in the authors' code.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct KerpleConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
};

class LOCANT_API Kerple final : public Encoding {
 public:
  static constexpr const char* kName = "kerple";
  static constexpr const char* kClassName = "Kerple";
  static constexpr const char* kSummary =
      "a learned penalty in the logarithm of the distance: -r1·ln(1 + r2·|pos(j)-pos(i)|)";
  static const Fields<KerpleConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Kerple(const KerpleConfig& config);

  const KerpleConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  KerpleConfig config_;
};

}  // namespace locant::inline v0
