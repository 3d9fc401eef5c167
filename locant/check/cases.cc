// From levels of factors to cases.
#include <array>

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

struct Starts {
  int64_t q, k;
};
// Queries behind a cache, keys before position 0, and positions that float32 cannot hold.
constexpr int64_t kFar = int64_t{1} << 24;
constexpr std::array<Starts, 4> kStartPairs = {{{0, 0}, {37, 0}, {0, -5}, {kFar + 1, kFar}}};

// The plain levels come twice, so that most rows have them.
constexpr std::array<bool, 3> kPoisons = {false, false, true};
constexpr std::array<std::optional<double>, 3> kScales = {std::nullopt, std::nullopt, 0.21};

// The value the encoding takes for a field, given or default.
int64_t integer(const EncodingEntry& entry, int configuration, const std::string& name) {
  return std::get<int64_t>(entry.make(entry.cases[configuration])->fields().at(name));
}

int64_t group_of(int level, int64_t heads) {
  return kGroups[level] > 0 ? kGroups[level] : heads;
}

CheckCase case_of(const EncodingEntry& entry, const std::vector<int>& row, int64_t number) {
  CheckCase out;
  out.encoding = entry.name;
  out.number = number;
  out.fields = entry.cases[row[kConfiguration]];
  out.batch = kBatches[row[kBatch]];
  out.visible = kVisibles[row[kVisible]];
  out.mask = kMasks[row[kMask]];
  out.layout = kLayouts[row[kLayout]];
  out.dtype = kTypes[row[kType]].in;
  out.out_dtype = kTypes[row[kType]].out;
  out.heads = integer(entry, row[kConfiguration], "heads");
  out.head_dim = integer(entry, row[kConfiguration], "head_dim");
  out.kv_heads = out.heads / group_of(row[kGroup], out.heads);
  out.q_len = kLengthPairs[row[kLengths]].q;
  out.k_len = kLengthPairs[row[kLengths]].k;
  out.q_start = kStartPairs[row[kStarts]].q;
  out.k_start = kStartPairs[row[kStarts]].k;
  out.poisoned = kPoisons[row[kPoison]];
  out.scale = kScales[row[kScale]];
  out.tiling = kTilings[row[kTiling]];
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
  return text.str();
}

std::vector<CheckCase> check_cases(const EncodingEntry& entry) {
  std::vector<int> levels(kFactors);
  levels[kConfiguration] = static_cast<int>(entry.cases.size());
  levels[kBatch] = kBatches.size();
  levels[kVisible] = kVisibles.size();
  levels[kMask] = kMasks.size();
  levels[kGroup] = kGroups.size();
  levels[kLengths] = kLengthPairs.size();
  levels[kStarts] = kStartPairs.size();
  levels[kLayout] = kLayouts.size();
  levels[kType] = kTypes.size();
  levels[kPoison] = kPoisons.size();
  levels[kScale] = kScales.size();
  levels[kTiling] = kTilings.size();
  if (entry.make(entry.cases.front())->uses_segments()) levels.push_back(kSegmentKinds.size());
  const Compatible compatible = [&](const FactorLevel& x, const FactorLevel& y) {
    if (x.factor != kConfiguration || y.factor != kGroup) return true;
    const int64_t heads = integer(entry, x.level, "heads");
    return heads % group_of(y.level, heads) == 0;
  };
  std::vector<CheckCase> out;
  for (const std::vector<int>& row : pairwise(levels, compatible, /*seed=*/2018))
    out.push_back(case_of(entry, row, static_cast<int64_t>(out.size())));
  return out;
}

}  // namespace locant::inline v0
