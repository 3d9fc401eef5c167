// No position encoding: plain scaled dot-product attention.
//
//   S[i,j] = <q_i, k_j> / sqrt(d)
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct NoneConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
};

class LOCANT_API None final : public Encoding {
 public:
  static constexpr const char* kName = "none";
  static constexpr const char* kClassName = "NoEncoding";
  static constexpr const char* kSummary = "no position encoding: <q,k>/sqrt(d)";
  static const Fields<NoneConfig>& description();
  static std::vector<FieldValues> cases();

  explicit None(const NoneConfig& config);

  const NoneConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  NoneConfig config_;
};

}  // namespace locant::inline v0
