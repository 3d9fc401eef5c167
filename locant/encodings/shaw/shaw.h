// Relative keys and values (Shaw et al. 2018), and BERT's relative_key and relative_key_query.
//
//   S[i,j] = (<q_i, k_j> + <q_i, keys[row]> [+ <k_j, keys[row]>]) / sqrt(d)      [key_query]
//   O_i    = sum_j P[i,j]·(v_j + values[row])                                    [values]
//   row    = clip(offset, -max_distance, max_distance) + max_distance
//   offset = pos(j) - pos(i), or pos(i) - pos(j) if reversed
//
//   keys, values: (2·max_distance + 1, d), or (heads, 2·max_distance + 1, d) if per_head
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct ShawConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t max_distance = 16;  // the paper's k
  bool values = true;         // relative values too
  bool per_head = false;      // a table per head instead of one for all
  bool clip = true;           // false: a larger distance is an error (max_distance = max_len - 1)
  bool reversed = false;      // rows counted by pos(i) - pos(j), as BERT does
  bool key_query = false;     // also <k_j, keys[row]>: BERT's relative_key_query
};

class LOCANT_API Shaw final : public Encoding {
 public:
  static constexpr const char* kName = "shaw";
  static constexpr const char* kClassName = "Shaw";
  static constexpr const char* kSummary = "learned vectors by clipped distance for keys, values";
  static const Fields<ShawConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Shaw(const ShawConfig& config);

  const ShawConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  ShawConfig config_;
  RowMap map_;  // clip(offset) + max_distance
};

}  // namespace locant::inline v0
