#include "locant/encodings/learned/learned.h"

#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kMaxLen = int64_t{1} << 24;

LearnedConfig checked(LearnedConfig config) {
  config = with_dim(Learned::kName, config);
  require(config.max_len >= 1 && config.max_len <= kMaxLen, Learned::kName,
          "max_len must be from 1 to ", kMaxLen, ", got ", config.max_len);
  require(config.padding_idx < config.max_len, Learned::kName,
          "padding_idx must be < max_len = ", config.max_len, ", got ", config.padding_idx);
  return config;
}

Parameter table_of(const LearnedConfig& config) {
  return {.name = "table",
          .shape = {config.max_len, config.dim},
          .shape_in_words = "max_len, dim",
          .doc = "the vector of each position"};
}

template <class Real, class UseRow>
void each_table_row(const ConstView& table, std::span<const int64_t> positions, const UseRow& use) {
  const bool as_it_is = table.dtype == dtype_of<Real>() && table.strides[1] == 1;
  std::vector<Real> row(as_it_is ? 0 : table.shape[1]);
  for (size_t n = 0; n < positions.size(); ++n) {
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = static_cast<Real>(element(table, positions[n], static_cast<int64_t>(c)));
    use(static_cast<int64_t>(n), as_it_is ? table.at<Real>(positions[n]) : row.data());
  }
}

}  // namespace

const Fields<LearnedConfig>& Learned::description() {
  static const Fields<LearnedConfig> fields{
      kName,
      {
          field("heads", &LearnedConfig::heads, "query heads"),
          field("head_dim", &LearnedConfig::head_dim, "width d of a head"),
          field("dim", &LearnedConfig::dim, "width D of the input; 0: heads·head_dim"),
          field("max_len", &LearnedConfig::max_len, "rows of the table"),
          field("padding_idx", &LearnedConfig::padding_idx,
                "-1: count from 0; else count real tokens from padding_idx + 1"),
      }};
  return fields;
}

Learned::Learned(const LearnedConfig& config)
    : Absolute(kName, checked(config), {table_of(checked(config))}), config_(checked(config)) {}

void Learned::check_position(int64_t position) const {
  require(position >= 0 && position < config_.max_len, kName, "position ", position,
          " is not in the table: max_len is ", config_.max_len);
}

void Learned::each_row(std::span<const int64_t> positions, const UseRow<float>& use) const {
  each_table_row<float>(parameter("table"), positions, use);
}
void Learned::each_row(std::span<const int64_t> positions, const UseRow<double>& use) const {
  each_table_row<double>(parameter("table"), positions, use);
}

// dtable[position(b,l)] += dout[b,l], also where the position is padding_idx.
void Learned::pull_back_rows(std::span<const int64_t> positions, const ConstView& dout,
                             int64_t begin, int64_t end, ParameterGradients& gradients) const {
  const int64_t B = dout.shape[0], L = dout.shape[1];
  const bool shared = static_cast<int64_t>(positions.size()) == L;
  const View dtable = gradients.at("table").view();
  const int64_t channels[] = {end - begin}, stride[] = {dout.strides[2]};
  for (int64_t b = 0; b < B; ++b)
    for (int64_t l = 0; l < L; ++l)
      add_to(
          View(dtable.row(positions[(shared ? 0 : b) * L + l], begin, 0), dtable.dtype, channels),
          ConstView(dout.row(b, l, begin), dout.dtype, channels, stride));
}

}  // namespace locant::inline v0
