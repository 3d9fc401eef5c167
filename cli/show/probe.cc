#include "cli/show/probe.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "locant/check/random.h"
#include "locant/core/error.h"

namespace locant::cli {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int64_t width_of(const Encoding& encoding) {
  return integer(encoding, "head_dim");
}

}  // namespace

std::unique_ptr<Encoding> make(const Request& request, FieldValues usual) {
  for (const auto& [name, value] : request.fields) usual[name] = value;
  std::unique_ptr<Encoding> encoding = request.entry.make(usual);
  check_drawable(*encoding);
  encoding->init(1);
  return encoding;
}

void check_drawable(const Encoding& encoding) {
  constexpr int64_t kMostColumns = 4096, kMostNumbers = int64_t{1} << 24;
  const int64_t heads = integer(encoding, "heads"), d = width_of(encoding);
  require(
      heads <= kMostColumns && d <= kMostColumns / heads && encoding.embed_dim() <= kMostColumns,
      "show", encoding.name(), " is too wide to draw: heads·head_dim must be <= ", kMostColumns,
      ", got ", heads, " and ", d);
  for (const Parameter& parameter : encoding.parameters()) {
    double numbers = 1;
    for (const int64_t extent : parameter.shape) numbers *= static_cast<double>(extent);
    require(numbers <= kMostNumbers, "show", "parameter '", parameter.name, "' of ",
            encoding.name(), " is too large to draw: ", shape_text(parameter.shape));
  }
}

int64_t integer(const Encoding& encoding, const char* name) {
  return std::get<int64_t>(encoding.fields().at(name));
}

bool flag(const Encoding& encoding, const char* name) {
  return std::get<bool>(encoding.fields().at(name));
}

std::string settings_text(const Encoding& encoding, const std::vector<std::string>& names) {
  std::string out;
  const FieldValues fields = encoding.fields();
  for (const std::string& name : names)
    out += (out.empty() ? "" : ", ") + name + " = " + text_of(fields.at(name));
  return out;
}

std::vector<double> random_values(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> out(count);
  for (double& value : out) value = random.symmetric();
  return out;
}

std::vector<double> smooth_rows(int64_t rows, int64_t d, uint64_t seed) {
  constexpr double kKept = 0.9;  // of the row before; variances stay 1
  std::vector<double> out = random_values(rows * d, seed);
  for (int64_t n = d; n < rows * d; ++n)
    out[n] = kKept * out[n - d] + std::sqrt(1 - kKept * kKept) * out[n];
  return out;
}

std::vector<double> range(int64_t first, int64_t last) {
  std::vector<double> out;
  for (int64_t n = first; n <= last; ++n) out.push_back(static_cast<double>(n));
  return out;
}

bool Scores::has(const std::string& term) const {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const auto& item) { return item.first == term; });
}

std::vector<double> Scores::matrix(const std::string& term, int64_t head) const {
  for (const auto& [name, values] : terms)
    if (name == term)
      return {values.begin() + head * q_len * k_len, values.begin() + (head + 1) * q_len * k_len};
  fail("show", "no term '", term, "' with these fields");
}

std::vector<double> Scores::probability_matrix(int64_t head) const {
  return {probabilities.begin() + head * q_len * k_len,
          probabilities.begin() + (head + 1) * q_len * k_len};
}

Scores scores_of(const Encoding& encoding, const std::vector<double>& q,
                 const std::vector<double>& k, const AttendOptions& options) {
  const int64_t H = integer(encoding, "heads"), d = width_of(encoding);
  const int64_t Lq = static_cast<int64_t>(q.size()) / (H * d);
  const int64_t Lk = static_cast<int64_t>(k.size()) / (H * d);
  const ConstView queries = view(q.data(), {1, H, Lq, d}), keys = view(k.data(), {1, H, Lk, d});
  std::vector<double> unused(q.size());
  Materialized all = attend_materialized(queries, keys, keys, encoding, options, {},
                                         view(unused.data(), {1, H, Lq, d}));
  const Problem problem = make_problem(queries, keys, keys, options);
  Scores out{.heads = H,
             .q_len = Lq,
             .k_len = Lk,
             .terms = std::move(all.scores),
             .probabilities = std::move(all.probabilities)};
  const auto hide = [&](std::vector<double>& values) {
    for (int64_t row = 0; row < H * Lq; ++row) {
      const KeyRange visible = problem.visible(problem.sequences[0], row % Lq);
      for (int64_t j = 0; j < Lk; ++j)
        if (j < visible.begin || j >= visible.end) values[row * Lk + j] = kNone;
    }
  };
  for (auto& [name, values] : out.terms) hide(values);
  hide(out.probabilities);
  return out;
}

Scores scores_by_offset(const Encoding& encoding, const std::vector<double>& q,
                        const std::vector<double>& k, int64_t first, int64_t last,
                        AttendOptions options) {
  const int64_t H = integer(encoding, "heads");
  std::vector<double> queries, keys;
  for (int64_t h = 0; h < H; ++h) queries.insert(queries.end(), q.begin(), q.end());
  for (int64_t row = 0; row < H * (last - first + 1); ++row)
    keys.insert(keys.end(), k.begin(), k.end());
  options.q_start = std::max<int64_t>(0, -first);
  options.k_start = options.q_start + first;
  return scores_of(encoding, queries, keys, options);
}

std::vector<double> rows_by_offset(const Encoding& encoding, const std::string& term,
                                   const ConstView& table, int64_t first, int64_t last) {
  const int64_t H = integer(encoding, "heads"), d = width_of(encoding);
  const std::vector<double> q(H * d), k(H * d * (last - first + 1));
  const ConstView queries = view(q.data(), {1, H, 1, d});
  const ConstView keys = view(k.data(), {1, H, last - first + 1, d});
  AttendOptions options;
  options.q_start = std::max<int64_t>(0, -first);
  options.k_start = options.q_start + first;
  const Problem problem = make_problem(queries, keys, keys, options);
  const Prepared prepared = encoding.prepare(problem, queries, keys);
  for (const Projection& projection : prepared.terms.projections) {
    if (projection.name != term) continue;
    std::vector<double> out;
    const int row_axis = table.rank - 2;
    for (int64_t offset = first; offset <= last; ++offset) {
      // Terms hold views of the user's table, maybe with its rows backwards: the address tells.
      const auto* row =
          static_cast<const std::byte*>(projection.table.row(0, projection.map.row(offset), 0));
      const ptrdiff_t bytes = row - static_cast<const std::byte*>(table.data);
      out.push_back(static_cast<double>(
          bytes / (table.strides[row_axis] * static_cast<ptrdiff_t>(size_of(table.dtype)))));
    }
    return out;
  }
  fail("show", "no term '", term, "' with these fields");
}

std::vector<double> by_pair(const std::vector<double>& by_offset, int64_t length) {
  std::vector<double> out;
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < length; ++j) out.push_back(by_offset[j - i + length - 1]);
  return out;
}

}  // namespace locant::cli
