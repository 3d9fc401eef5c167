// A learned vector per position (BERT), added to the input.
//
//   PE[p] = table[p]                            table (max_len, D)
//
// Row p is the position counted from 0 (BERT, padding_idx = -1), or by the rule of RoBERTa and
// MPNet (padding_idx >= 0, see absolute.h). A row that the table does not have is an error.
#pragma once

#include <cstdint>
#include <vector>

#include "locant/core/api.h"
#include "locant/encodings/absolute.h"

namespace locant::inline v0 {

struct LearnedConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  int64_t dim = 0;  // D, the width of the input; 0: heads·head_dim
  int64_t max_len = 512;
  int64_t padding_idx = -1;  // -1: every row counts, as in BERT; 1 in RoBERTa and MPNet
};

class LOCANT_API Learned final : public Absolute {
 public:
  static constexpr const char* kName = "learned";
  static constexpr const char* kClassName = "Learned";
  static constexpr const char* kSummary = "a learned vector per position, added to the input";
  static const Fields<LearnedConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Learned(const LearnedConfig& config);

  const LearnedConfig& config() const { return config_; }  // dim is never 0 here
  FieldValues fields() const override { return description().dump(config_); }

 private:
  void check_position(int64_t position) const override;
  void each_row(std::span<const int64_t> positions, const UseRow<float>& use) const override;
  void each_row(std::span<const int64_t> positions, const UseRow<double>& use) const override;
  void pull_back_rows(std::span<const int64_t> positions, const ConstView& dout, int64_t begin,
                      int64_t end, ParameterGradients& gradients) const override;
  double reference_element(int64_t position, int64_t channel) const override;

  LearnedConfig config_;
};

}  // namespace locant::inline v0
