// From levels of factors to cases.
#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "locant/check/check.h"
#include "locant/check/pairwise.h"

namespace locant::inline v0 {
namespace {

// The factors, in the order of a pairwise row.
enum Factor {
  kConfiguration,
  kBatch,
  kVisible,
  kMask,
  kGroup,
  kLengths,
  kStarts,
  kLayout,
  kType,
  kPoison,
  kScale,
  kTiling,
  kDropout,
  kFactors,
  kSegments = kFactors  // only for encodings that use them
};

constexpr std::array kBatches = {BatchKind::full, BatchKind::right_padded, BatchKind::left_padded,
                                 BatchKind::packed};
constexpr std::array kVisibles = {VisibleKind::all, VisibleKind::causal, VisibleKind::window,
                                  VisibleKind::causal_window, VisibleKind::prefix};
constexpr std::array kMasks = {MaskKind::none, MaskKind::boolean, MaskKind::additive,
                               MaskKind::empty_rows};
constexpr std::array kLayouts = {LayoutKind::bhld, LayoutKind::blhd, LayoutKind::fused_qkv};
constexpr std::array kSegmentKinds = {SegmentKind::none, SegmentKind::runs, SegmentKind::scattered};

struct Types {
  DType in, out;
};
constexpr std::array<Types, 6> kTypes = {{{DType::f32, DType::f32},
                                          {DType::f64, DType::f64},
                                          {DType::bf16, DType::bf16},
                                          {DType::bf16, DType::f32},
                                          {DType::f16, DType::f16},
                                          {DType::f16, DType::f32}}};

// The backward computes in f32 or f64; gradients have the type of out.
constexpr std::array<Types, 4> kGradientTypes = {{{DType::f32, DType::f32},
                                                  {DType::f64, DType::f64},
                                                  {DType::bf16, DType::f32},
                                                  {DType::f16, DType::f16}}};

// Query heads per key/value head; 0 stands for all of them.
constexpr std::array<int64_t, 3> kGroups = {1, 2, 0};

struct Lengths {
  int64_t q, k;
};
// Odd, and at least three tiles long each way with the tilings that name sizes (0 is the tuned
// size); last a decode step, whose few queries are one tile.
constexpr std::array<Lengths, 4> kLengthPairs = {{{97, 97}, {51, 107}, {109, 71}, {3, 139}}};
constexpr std::array<Tiling, 4> kTilings = {{{.rows = 16, .keys = 16},
                                             {.rows = 17, .keys = 32},
                                             {.rows = 13, .keys = 24},
                                             {.rows = 0, .keys = 0}}};
// For gradients: the backward's blocks have at least 32 keys. The last is small enough to look at
// many directions.
constexpr std::array<Lengths, 4> kGradientLengthPairs = {{{37, 71}, {71, 67}, {3, 75}, {5, 7}}};
constexpr int64_t kFewPairs = 64, kManyProbes = 8;

struct Starts {
  int64_t q, k;
};
// Queries behind a cache, keys before position 0, and positions that float32 cannot hold.
constexpr int64_t kFar = int64_t{1} << 24;
constexpr std::array<Starts, 4> kStartPairs = {{{0, 0}, {37, 0}, {0, -5}, {kFar + 1, kFar}}};

// The plain levels come twice, so that most rows have them.
constexpr std::array<bool, 3> kPoisons = {false, false, true};
constexpr std::array<std::optional<double>, 3> kScales = {std::nullopt, std::nullopt, 0.21};
constexpr std::array<double, 3> kDropouts = {0, 0, 0.3};

// What the lists of cases differ in.
struct Matrix {
  std::span<const Lengths> lengths;
  std::span<const Types> types;
  std::span<const bool> poisons;
};
constexpr Matrix kAttention = {kLengthPairs, kTypes, kPoisons};
constexpr Matrix kGradients = {kGradientLengthPairs, kGradientTypes, std::span(kPoisons).first(1)};

// The value the encoding takes for a field, given or default.
int64_t integer(const EncodingEntry& entry, int configuration, const std::string& name) {
  return std::get<int64_t>(entry.make(entry.cases[configuration])->fields().at(name));
}

// That with the fewest numbers in its parameters, and then in a row.
int smallest_configuration(const EncodingEntry& entry) {
  const auto size = [&](int configuration) {
    const auto encoding = entry.make(entry.cases[configuration]);
    int64_t sum = 0;
    for (const Parameter& parameter : encoding->parameters())
      sum += std::accumulate(parameter.shape.begin(), parameter.shape.end(), int64_t{1},
                             std::multiplies<>());
    return std::pair(
        sum, integer(entry, configuration, "heads") * integer(entry, configuration, "head_dim"));
  };
  int best = 0;
  for (int n = 1; n < static_cast<int>(entry.cases.size()); ++n)
    if (size(n) < size(best)) best = n;
  return best;
}

int64_t group_of(int level, int64_t heads) {
  return kGroups[level] > 0 ? kGroups[level] : heads;
}

CheckCase case_of(const EncodingEntry& entry, const Matrix& matrix, const std::vector<int>& row,
                  int64_t number) {
  CheckCase out;
  out.encoding = entry.name;
  out.number = number;
  out.fields = entry.cases[row[kConfiguration]];
  out.batch = kBatches[row[kBatch]];
  out.visible = kVisibles[row[kVisible]];
  out.mask = kMasks[row[kMask]];
  out.layout = kLayouts[row[kLayout]];
  out.dtype = matrix.types[row[kType]].in;
  out.out_dtype = matrix.types[row[kType]].out;
  out.heads = integer(entry, row[kConfiguration], "heads");
  out.head_dim = integer(entry, row[kConfiguration], "head_dim");
  out.kv_heads = out.heads / group_of(row[kGroup], out.heads);
  out.q_len = matrix.lengths[row[kLengths]].q;
  out.k_len = matrix.lengths[row[kLengths]].k;
  out.q_start = kStartPairs[row[kStarts]].q;
  out.k_start = kStartPairs[row[kStarts]].k;
  out.poisoned = matrix.poisons[row[kPoison]];
  out.scale = kScales[row[kScale]];
  out.tiling = kTilings[row[kTiling]];
  out.dropout = kDropouts[row[kDropout]];
  if (row.size() > kSegments) out.segments = kSegmentKinds[row[kSegments]];
  return out;
}

const char* word(BatchKind kind) {
  constexpr std::array words = {"full", "right padded", "left padded", "packed"};
  return words[static_cast<size_t>(kind)];
}
const char* word(VisibleKind kind) {
  constexpr std::array words = {"all visible", "causal", "window", "causal window", "prefix"};
  return words[static_cast<size_t>(kind)];
}
const char* word(MaskKind kind) {
  constexpr std::array words = {"no mask", "boolean mask", "additive mask", "empty rows"};
  return words[static_cast<size_t>(kind)];
}
const char* word(LayoutKind kind) {
  constexpr std::array words = {"bhld", "blhd", "fused qkv"};
  return words[static_cast<size_t>(kind)];
}

const char* word(SegmentKind kind) {
  constexpr std::array words = {"no segments", "runs of segments", "scattered segments"};
  return words[static_cast<size_t>(kind)];
}

std::vector<CheckCase> cases_of(const EncodingEntry& entry, const Matrix& matrix) {
  std::vector<int> levels(kFactors);
  levels[kConfiguration] = static_cast<int>(entry.cases.size());
  levels[kBatch] = kBatches.size();
  levels[kVisible] = kVisibles.size();
  levels[kMask] = kMasks.size();
  levels[kGroup] = kGroups.size();
  levels[kLengths] = static_cast<int>(matrix.lengths.size());
  levels[kStarts] = kStartPairs.size();
  levels[kLayout] = kLayouts.size();
  levels[kType] = static_cast<int>(matrix.types.size());
  levels[kPoison] = static_cast<int>(matrix.poisons.size());
  levels[kScale] = kScales.size();
  levels[kTiling] = kTilings.size();
  levels[kDropout] = kDropouts.size();
  if (entry.make(entry.cases.front())->uses_segments()) levels.push_back(kSegmentKinds.size());
  const Compatible compatible = [&](const FactorLevel& x, const FactorLevel& y) {
    // A dropped pair is one times 0, not a hidden one: its NaN would show.
    if (x.factor == kPoison && y.factor == kDropout)
      return !matrix.poisons[x.level] || kDropouts[y.level] == 0;
    if (x.factor != kConfiguration || y.factor != kGroup) return true;
    const int64_t heads = integer(entry, x.level, "heads");
    return heads % group_of(y.level, heads) == 0;
  };
  std::vector<CheckCase> out;
  for (const std::vector<int>& row : pairwise(levels, compatible, /*seed=*/2018))
    out.push_back(case_of(entry, matrix, row, static_cast<int64_t>(out.size())));
  return out;
}

}  // namespace

std::string describe(const CheckCase& check) {
  std::ostringstream text;
  for (const auto& [name, value] : check.fields) text << name << '=' << text_of(value) << ' ';
  text << "| " << word(check.batch) << ", " << word(check.visible) << ", " << word(check.mask)
       << ", " << word(check.layout) << ", " << name_of(check.dtype);
  if (check.out_dtype != check.dtype) text << " to " << name_of(check.out_dtype);
  text << ", kv_heads=" << check.kv_heads << " q_len=" << check.q_len << " k_len=" << check.k_len
       << " q_start=" << check.q_start << " k_start=" << check.k_start
       << " rows=" << check.tiling.rows << " keys=" << check.tiling.keys;
  if (check.segments != SegmentKind::none) text << ", " << word(check.segments);
  if (check.poisoned) text << ", poisoned";
  if (check.scale) text << ", scale=" << *check.scale;
  if (check.dropout > 0) text << ", dropout=" << check.dropout;
  return text.str();
}

std::vector<CheckCase> check_cases(const EncodingEntry& entry) {
  return cases_of(entry, kAttention);
}

std::vector<CheckCase> gradient_cases(const EncodingEntry& entry) {
  std::vector<CheckCase> out = cases_of(entry, kGradients);
  for (CheckCase& check : out)
    if (check.q_len * check.k_len < kFewPairs) check.probes = kManyProbes;
  // Several work items for the keys of a head, several chunks of queries, and every element alone.
  struct Extra {
    int configuration;
    Lengths lengths;
    VisibleKind visible;
    DType dtype;
    int64_t probes;
  };
  for (const Extra& extra :
       {Extra{0, {3, 2100}, VisibleKind::all, DType::f32, 1},
        Extra{0, {775, 9}, VisibleKind::all, DType::f32, 1},
        Extra{smallest_configuration(entry), {4, 5}, VisibleKind::causal, DType::f64, 0}}) {
    CheckCase check = out.front();
    check.number = static_cast<int64_t>(out.size());
    check.fields = entry.cases[extra.configuration];
    check.batch = BatchKind::full;
    check.visible = extra.visible;
    check.mask = MaskKind::none;
    check.layout = LayoutKind::bhld;
    check.dtype = check.out_dtype = extra.dtype;
    check.heads = integer(entry, extra.configuration, "heads");
    check.head_dim = integer(entry, extra.configuration, "head_dim");
    check.kv_heads = 1;
    check.q_len = extra.lengths.q;
    check.k_len = extra.lengths.k;
    check.q_start = check.k_start = 0;
    check.scale.reset();
    check.dropout = 0;
    check.tiling = {};
    check.probes = extra.probes;
    if (check.segments != SegmentKind::none) check.segments = SegmentKind::runs;
    out.push_back(check);
  }
  return out;
}

}  // namespace locant::inline v0
