#include "locant/encodings/rope/rope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "locant/core/overlap.h"
#include "locant/encodings/checks.h"
#include "locant/encodings/rope/rope_config.h"
#include "locant/encodings/rope/rope_frequencies.h"
#include "locant/encodings/rope/rope_rotate.h"

namespace locant::inline v0 {
namespace {

// First and last position of some rows, over all axes.
struct PositionRange {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();

  bool empty() const { return first > last; }
  void add(int64_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

PositionRange range_of(const ConstView& ids, int64_t batch, int64_t begin, int64_t length,
                       int64_t start) {
  PositionRange range;
  if (length == 0) return range;
  if (!ids) return {start, start + length - 1};
  const int64_t row = ids.shape[0] == 1 ? 0 : batch;
  for (int64_t i = begin; i < begin + length; ++i)
    for (int64_t axis = 0; axis < ids.shape[2]; ++axis) range.add(*ids.at<int64_t>(row, i, axis));
  return range;
}

int64_t length_of(const PositionRange& range) {
  return range.empty() ? 0 : range.last + 1;
}

void check_dtype(const char* name, const ConstView& x) {
  require(is_floating(x.dtype), Rope::kName, name, " is ", name_of(x.dtype),
          " but must be f32, f64, f16 or bf16");
}

// xpos: e^{a·(p - origin)} of the fastest pair must stay within the number type.
void check_growth(const std::vector<double>& growth, DType dtype, const PositionRange& range,
                  int64_t origin) {
  if (growth.empty() || range.empty()) return;
  const double limit = dtype == DType::f64 ? 700 : 80;
  const int64_t farthest = std::max(std::abs(range.first - origin), std::abs(range.last - origin));
  const double reach = limit / std::abs(growth.front());
  require(static_cast<double>(farthest) <= reach, Rope::kName,
          "xpos magnitudes leave the range of ", name_of(dtype), ": a position is ", farthest,
          " from the origin ", origin, ", and at most ", static_cast<int64_t>(reach),
          " is possible");
}

// The rows of all sequences, each once: sequences may share keys if they see them alike.
std::vector<RopeRows> each_once(std::vector<RopeRows> rows, bool have_ids) {
  std::erase_if(rows, [](const RopeRows& x) { return x.length == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const RopeRows& a, const RopeRows& b) {
    return std::pair(a.batch, a.begin) < std::pair(b.batch, b.begin);
  });
  std::vector<RopeRows> out;
  for (RopeRows x : rows) {
    if (!out.empty() && out.back().batch == x.batch) {
      const RopeRows& before = out.back();
      const int64_t shared = before.begin + before.length - x.begin;
      if (shared > 0) {
        const bool same_positions = have_ids || x.start - x.begin == before.start - before.begin;
        require(same_positions && x.phasors == before.phasors && x.origin == before.origin,
                Rope::kName, "two sequences share key row ", x.begin, " of batch row ", x.batch,
                " but rotate it differently; give each its own keys");
        if (shared >= x.length) continue;
        x.begin += shared;
        x.start += shared;
        x.length -= shared;
      }
    }
    out.push_back(x);
  }
  return out;
}

bool same_elements(const ConstView& a, const ConstView& b) {
  return a.data == b.data && a.strides == b.strides;
}

}  // namespace

// --- the encoding --------------------------------------------------------------------------------

Rope::Rope(const RopeConfig& config) : Encoding(kName, {}), config_(checked(config)) {
  usual_ = make_turn(config_.original_max_position);
  if (config_.scaling == "longrope") beyond_ = make_turn(config_.original_max_position + 1);
}

int64_t Rope::position_axes() const {
  return rope_axis_count(config_);
}

RopeFrequencies Rope::frequencies(int64_t length) const {
  require(length >= 0, kName, "length must be >= 0, got ", length);
  return rope_frequencies(config_, length);
}

Rope::Turn Rope::make_turn(int64_t length) const {
  const RopeFrequencies frequencies = rope_frequencies(config_, length);
  const std::vector<int64_t> axis_of_pair = rope_axis_of_pair(config_);
  std::vector<double> growth = rope_growth(config_);
  Turn turn;
  turn.query = std::make_shared<RopePhasors>(frequencies, growth, axis_of_pair);
  turn.key = turn.query;
  if (!growth.empty()) {
    for (double& a : growth) a = -a;
    turn.key = std::make_shared<RopePhasors>(frequencies, growth, axis_of_pair);
  }
  return turn;
}

// A sequence's own length decides, whatever its batch mates have.
Rope::Turn Rope::turn(int64_t length) const {
  if (length > config_.original_max_position) {
    if (config_.scaling == "longrope") return beyond_;
    if (config_.scaling == "dynamic") return make_turn(length);
  }
  return usual_;
}

// --- attention -----------------------------------------------------------------------------------

// Both sides of a problem: which rows turn by which phasors.
struct Rope::Plan {
  std::vector<RopeRows> q, k;
  std::map<int64_t, Turn> turns;  // by length; they own what the rows point to
};

Rope::Plan Rope::make_plan(const Problem& problem, DType dtype) const {
  Plan plan;
  const std::vector<double> growth = rope_growth(config_);
  for (const Sequence& s : problem.sequences) {
    const PositionRange q_range =
        range_of(problem.q_positions, s.batch, s.q_begin, s.q_len, s.q_start);
    const PositionRange k_range =
        range_of(problem.k_positions, s.batch, s.k_begin, s.k_len, s.k_start);
    const int64_t length = length_of(k_range);
    auto found = plan.turns.find(length);
    if (found == plan.turns.end()) found = plan.turns.emplace(length, turn(length)).first;
    // xpos: scores depend on differences only, so magnitudes may be 1 in the middle of the keys.
    const PositionRange& middle = k_range.empty() ? q_range : k_range;
    const bool grows = !growth.empty() && !middle.empty();
    const int64_t origin = grows ? middle.first + (middle.last - middle.first) / 2 : 0;
    check_growth(growth, dtype, q_range, origin);
    check_growth(growth, dtype, k_range, origin);
    plan.q.push_back({.batch = s.batch,
                      .begin = s.q_begin,
                      .length = s.q_len,
                      .start = s.q_start,
                      .origin = origin,
                      .phasors = found->second.query.get()});
    plan.k.push_back({.batch = s.batch,
                      .begin = s.k_begin,
                      .length = s.k_len,
                      .start = s.k_start,
                      .origin = origin,
                      .phasors = found->second.key.get()});
  }
  plan.k = each_once(std::move(plan.k), static_cast<bool>(problem.k_positions));
  return plan;
}

Prepared Rope::prepare(const Problem& problem, const ConstView& q, const ConstView& k) const {
  check_fit(kName, config_, problem);
  Prepared prepared = unchanged(problem, q, k);
  if (!q || !k) return prepared;  // only the terms are asked for
  check_dtype("q", q);
  check_dtype("k", k);

  const Plan plan = make_plan(problem, q.dtype);
  // (B, H, L, d), contiguous, of the computing type. Rows that belong to no sequence are never
  // read: they stay undefined.
  const auto rotated = [&](const ConstView& x, const ConstView& positions,
                           const std::vector<RopeRows>& rows) -> ConstView {
    const DType dtype = x.dtype == DType::f64 ? DType::f64 : DType::f32;
    const size_t bytes = static_cast<size_t>(x.size()) * size_of(dtype);
    auto memory = std::make_shared_for_overwrite<std::byte[]>(bytes);
    const View out(memory.get(), dtype, x.shape);
    prepared.storage.push_back(std::move(memory));
    rotate_rows({.from = x,
                 .to = out,
                 .positions = positions,
                 .interleaved = config_.layout == "interleaved"},
                rows);
    return out;
  };
  prepared.q = rotated(q, problem.q_positions, plan.q);
  prepared.k = rotated(k, problem.k_positions, plan.k);
  return prepared;
}

// The transpose of a rotation by p times m is a rotation by -p times m.
void Rope::pullback(const Problem& problem, const Prepared&, const View& dq, const View& dk,
                    const TermGradients&, ParameterGradients&) const {
  check_fit(kName, config_, problem);
  check_dtype("dq", dq);
  check_dtype("dk", dk);
  const Plan plan = make_plan(problem, dq.dtype);
  const auto turn_back = [&](const View& x, const ConstView& positions,
                             const std::vector<RopeRows>& rows) {
    rotate_rows({.from = x,
                 .to = x,
                 .positions = positions,
                 .interleaved = config_.layout == "interleaved",
                 .inverse = true},
                rows);
  };
  turn_back(dq, problem.q_positions, plan.q);
  turn_back(dk, problem.k_positions, plan.k);
}

// --- outside attention ---------------------------------------------------------------------------

void Rope::rotate(const ConstView& x, const RotateOptions& options, const View& out) const {
  check_dtype("x", x);
  require(x.rank == 4 && x.shape[3] == config_.head_dim, kName,
          "x must be (B, H, L, head_dim = ", config_.head_dim, "), got shape ", shape_text(x));
  require(out.dtype == x.dtype && out.rank == 4 && out.shape == x.shape, kName, "out is ",
          name_of(out.dtype), " ", shape_text(out), " but x is ", name_of(x.dtype), " ",
          shape_text(x));
  if (x.size() == 0) return;
  require(x.data != nullptr && out.data != nullptr, kName, "x and out must not be null");
  require(same_elements(x, out) || !may_overlap(x, out), kName,
          "out must be x itself or apart from it in memory");
  for (int axis = 0; axis < 4; ++axis)
    require(out.strides[axis] != 0 || out.shape[axis] == 1, kName, "out has stride 0 on axis ",
            axis, " of extent ", out.shape[axis]);
  require(options.length >= 0, kName, "length must be >= 0, got ", options.length);

  const int64_t batch = x.shape[0], length = x.shape[2];
  validate_positions(kName, "positions", options.positions, batch, length);
  check_position_axes("positions", options.positions);
  require(std::abs(options.start) <= kMaxPosition && std::abs(options.origin) <= kMaxPosition,
          kName, "start and origin must be within ±2^60, got ", options.start, " and ",
          options.origin);

  const std::vector<double> growth = rope_growth(config_);
  std::map<int64_t, Turn> turns;
  std::vector<RopeRows> rows;
  for (int64_t b = 0; b < batch; ++b) {
    const PositionRange range = range_of(options.positions, b, 0, length, options.start);
    check_growth(growth, x.dtype, range, options.origin);
    const int64_t own = options.length > 0 ? options.length : length_of(range);
    auto found = turns.find(own);
    if (found == turns.end()) found = turns.emplace(own, turn(own)).first;
    const bool query = options.side == Side::query;
    rows.push_back({.batch = b,
                    .length = length,
                    .start = options.start,
                    .origin = growth.empty() ? 0 : options.origin,
                    .phasors = (query ? found->second.query : found->second.key).get()});
  }
  rotate_rows({.from = x,
               .to = out,
               .positions = options.positions,
               .interleaved = config_.layout == "interleaved",
               .inverse = options.inverse},
              rows);
}

}  // namespace locant::inline v0
