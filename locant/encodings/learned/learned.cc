#include "locant/encodings/learned/learned.h"

namespace locant {
namespace {

constexpr int64_t kMaxLen = int64_t{1} << 24;

LearnedConfig checked(LearnedConfig config) {
  config.dim = resolved_dim(Learned::kName, config.heads, config.head_dim, config.dim);
  require(config.max_len >= 1 && config.max_len <= kMaxLen, Learned::kName,
          "max_len must be from 1 to ", kMaxLen, ", got ", config.max_len);
  require(config.padding_idx >= -1 && config.padding_idx < config.max_len, Learned::kName,
          "padding_idx must be from -1 to max_len - 1 = ", config.max_len - 1, ", got ",
          config.padding_idx);
  return config;
}

Parameter table_of(const LearnedConfig& config) {
  return {.name = "table",
          .shape = {config.max_len, config.dim},
          .shape_in_words = "max_len, dim",
          .doc = "the vector of each position"};
}

template <class Real, class Stored>
void copy_rows(const ConstView& table, std::span<const int64_t> positions, Real* rows) {
  const int64_t dim = table.shape[1], stride = table.strides[1];
  for (const int64_t position : positions) {
    const Stored* row = table.at<Stored>(position);
    for (int64_t c = 0; c < dim; ++c) *rows++ = static_cast<Real>(row[c * stride]);
  }
}

template <class Real>
void copy_rows_of_any_type(const ConstView& table, std::span<const int64_t> positions, Real* rows) {
  if (table.dtype == DType::f32) return copy_rows<Real, float>(table, positions, rows);
  if (table.dtype == DType::f64) return copy_rows<Real, double>(table, positions, rows);
  for (const int64_t position : positions)
    for (int64_t c = 0; c < table.shape[1]; ++c)
      *rows++ = static_cast<Real>(element(table, position, c));
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

void Learned::fill_rows(std::span<const int64_t> positions, float* rows) const {
  copy_rows_of_any_type(parameter("table"), positions, rows);
}
void Learned::fill_rows(std::span<const int64_t> positions, double* rows) const {
  copy_rows_of_any_type(parameter("table"), positions, rows);
}

}  // namespace locant
