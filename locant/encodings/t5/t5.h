// T5's relative bias (Raffel et al. 2020): a learned number per head and log-spaced bucket.
//
//   S[i,j] = c·<q_i, k_j> + bias[bucket(pos(j) - pos(i)), h]        bias (num_buckets, heads)
//
// T5 itself has c = 1; MPNet is the same bias with c = 1/sqrt(d).
#pragma once

#include <cstdint>
#include <vector>

#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct T5Config {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t num_buckets = 32;
  int64_t max_distance = 128;  // from here on all distances share the last bucket
  bool bidirectional = true;   // false: keys ahead of the query share bucket 0 (decoders)
  double scale = 1.0;          // c
};

class LOCANT_API T5 final : public Encoding {
 public:
  static constexpr const char* kName = "t5";
  static constexpr const char* kClassName = "T5";
  static constexpr const char* kSummary = "a learned bias per head and log-spaced distance bucket";
  static const Fields<T5Config>& description();
  static std::vector<FieldValues> cases();

  explicit T5(const T5Config& config);

  const T5Config& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  T5Config config_;
  int64_t first_ = 0;             // offset of buckets_[0]
  std::vector<int32_t> buckets_;  // bucket by offset - first_; constant beyond both ends
};

}  // namespace locant::inline v0
