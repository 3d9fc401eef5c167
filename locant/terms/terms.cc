#include "locant/terms/terms.h"

#include <cmath>

namespace locant::inline v0 {
namespace {

void check_vector(const char* what, const std::string& name, const ConstView& values, int64_t heads,
                  int64_t head_dim) {
  if (!values) return;
  require(values.rank == 2 && values.shape[0] == heads && values.shape[1] == head_dim &&
              is_floating(values.dtype),
          "terms", what, " of '", name, "' is ", name_of(values.dtype), " ", shape_text(values),
          " but must be floating point (", heads, ", ", head_dim, ")");
}

void check_segment_table(const SegmentTerm& term, int64_t heads, int64_t head_dim) {
  const ConstView& table = term.table;
  require(table.data != nullptr && is_floating(table.dtype) && table.rank == 3 &&
              (table.shape[0] == heads || table.shape[0] == 1) && table.shape[1] == 2 &&
              table.shape[2] == head_dim,
          "terms", "table of '", term.name, "' is ", name_of(table.dtype), " ", shape_text(table),
          " but must be floating point (", heads, " or 1, 2, ", head_dim, ")");
}

void check_table(const std::string& name, const ConstView& table, const RowMap& map, int64_t heads,
                 int64_t width) {
  require(table.data != nullptr && is_floating(table.dtype) && table.rank == 3 &&
              (table.shape[0] == heads || table.shape[0] == 1) && table.shape[2] == width,
          "terms", "table of '", name, "' is ", name_of(table.dtype), " ", shape_text(table),
          " but must be floating point (", heads, " or 1, rows, ", width, ")");
  require(!map.rows.empty(), "terms", "'", name, "' has an empty row map");
  for (size_t n = 1; n < map.rows.size(); ++n)
    require(map.rows[n - 1] <= map.rows[n], "terms", "'", name, "' has a row map that falls from ",
            map.rows[n - 1], " to ", map.rows[n], " at offset ",
            map.first + static_cast<int64_t>(n));
  require(map.rows.front() >= 0 && map.rows.back() < table.shape[1], "terms", "'", name,
          "' maps to rows ", map.rows.front(), " to ", map.rows.back(), " but the table has ",
          table.shape[1]);
}

void check_bias(const OffsetBias& bias, int64_t heads) {
  const auto slopes_fit = [&](const std::vector<double>& slopes) {
    return slopes.empty() || static_cast<int64_t>(slopes.size()) == heads;
  };
  require(bias.count >= 1 && static_cast<int64_t>(bias.values.size()) == heads * bias.count,
          "terms", "bias '", bias.name, "' has ", bias.values.size(), " values but ", heads,
          " heads and ", bias.count, " offsets");
  require(slopes_fit(bias.left_slope) && slopes_fit(bias.right_slope), "terms", "bias '", bias.name,
          "' has ", bias.left_slope.size(), " left and ", bias.right_slope.size(),
          " right slopes but ", heads, " heads");
}

}  // namespace

void OffsetBias::add_to(int64_t head, int64_t offset, int64_t size, double* out) const {
  const double* own = &values[head * count];
  const double left = left_slope.empty() ? 0 : left_slope[head];
  const double right = right_slope.empty() ? 0 : right_slope[head];
  // Numbers [0, inside) lie before the table, [inside, after) in it.
  const int64_t inside = std::clamp<int64_t>(first - offset, 0, size);
  const int64_t after = std::clamp<int64_t>(first + count - offset, inside, size);
  for (int64_t n = 0; n < inside; ++n)
    out[n] += own[0] + left * static_cast<double>(first - offset - n);
  for (int64_t n = inside; n < after; ++n) out[n] += own[offset + n - first];
  for (int64_t n = after; n < size; ++n)
    out[n] += own[count - 1] + right * static_cast<double>(offset + n - (first + count - 1));
}

bool has_unit_steps(const RowMap& map) {
  for (size_t n = 1; n < map.rows.size(); ++n)
    if (map.rows[n] - map.rows[n - 1] > 1) return false;
  return true;
}

void validate(const Terms& terms, int64_t heads, int64_t head_dim, int64_t value_dim) {
  // Not 0: packed keys carry the scale, and key-side products are divided by it again.
  require(std::isfinite(terms.scale) && terms.scale != 0, "terms",
          "scale must be finite and not 0, got ", terms.scale);
  check_vector("query_plus", "content", terms.query_plus, heads, head_dim);
  for (const OffsetBias& bias : terms.biases) check_bias(bias, heads);
  for (const Projection& p : terms.projections) {
    require(std::isfinite(p.scale), "terms", "scale of '", p.name, "' must be finite, got ",
            p.scale);
    check_vector("plus", p.name, p.plus, heads, head_dim);
    require(p.side == Side::query || !p.plus, "terms", "'", p.name,
            "' adds a vector on the key side; that is a bias by offset");
    check_table(p.name, p.table, p.map, heads, head_dim);
  }
  for (const ValueTerm& value : terms.values)
    check_table(value.name, value.table, value.map, heads, value_dim);
  for (const SegmentTerm& term : terms.segments) {
    require(std::isfinite(term.scale), "terms", "scale of '", term.name, "' must be finite, got ",
            term.scale);
    check_vector("plus", term.name, term.plus, heads, head_dim);
    check_segment_table(term, heads, head_dim);
  }
}

}  // namespace locant::inline v0
