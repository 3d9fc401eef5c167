#include "locant/terms/problem.h"

#include <limits>
#include <utility>

namespace locant::inline v0 {
namespace {

struct PositionRange {
  int64_t first, last;
};

// The positions of rows [begin, begin + length): the given ids, or start, start + 1, ...
PositionRange positions(const ConstView& ids, int64_t batch, int64_t begin, int64_t length,
                        int64_t start) {
  if (!ids) return {start, start + length - 1};
  const int64_t row = ids.shape[0] == 1 ? 0 : batch;
  PositionRange range{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t i = begin; i < begin + length; ++i) {
    const int64_t position = *ids.at<int64_t>(row, i);
    range.first = std::min(range.first, position);
    range.last = std::max(range.last, position);
  }
  return range;
}

// 0 <= begin, 0 <= length, begin + length <= size, without overflow.
void check_rows(size_t index, std::string_view what, int64_t begin, int64_t length, int64_t size) {
  require(begin >= 0 && length >= 0 && length <= size && begin <= size - length, "attend",
          "sequence ", index, " has ", what, " rows ", begin, " to ", begin, " + ", length,
          " but the buffer has ", size);
}

void check_position(size_t index, std::string_view what, int64_t position) {
  require(position >= -kMaxPosition && position <= kMaxPosition, "attend", "sequence ", index,
          " has ", what, " ", position, ", beyond ±2^60");
}

void check_sequences(const Problem& p) {
  for (size_t n = 0; n < p.sequences.size(); ++n) {
    const Sequence& s = p.sequences[n];
    require(s.batch >= 0 && s.batch < p.batch, "attend", "sequence ", n, " has batch index ",
            s.batch, " but the batch size is ", p.batch);
    check_rows(n, "query", s.q_begin, s.q_len, p.q_len);
    check_rows(n, "key", s.k_begin, s.k_len, p.k_len);
    check_position(n, "q_start", s.q_start);
    check_position(n, "k_start", s.k_start);
    require(s.prefix >= 0 && s.prefix <= s.k_len, "attend", "sequence ", n, " has prefix ",
            s.prefix, " but ", s.k_len, " keys");
  }

  // A query row belongs to one sequence: its output is written once.
  std::vector<size_t> order;
  for (size_t n = 0; n < p.sequences.size(); ++n)
    if (p.sequences[n].q_len > 0) order.push_back(n);
  const auto place = [&](size_t n) {
    return std::pair(p.sequences[n].batch, p.sequences[n].q_begin);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  for (size_t n = 1; n < order.size(); ++n) {
    const Sequence &a = p.sequences[order[n - 1]], &b = p.sequences[order[n]];
    require(a.batch != b.batch || a.q_begin + a.q_len <= b.q_begin, "attend", "sequences ",
            order[n - 1], " and ", order[n], " share query row ", b.q_begin, " of batch row ",
            b.batch);
  }
}

void check_mask(const Problem& p) {
  if (!p.mask) return;
  require(p.mask.dtype != DType::i64, "attend", "mask must be bool or floating point, got ",
          name_of(p.mask.dtype));
  const int64_t full[] = {p.batch, p.heads, p.q_len, p.k_len};
  bool fits = p.mask.rank == 4;
  for (int axis = 0; axis < 4; ++axis)
    fits = fits && (p.mask.shape[axis] == full[axis] || p.mask.shape[axis] == 1);
  require(fits, "attend", "mask has shape ", shape_text(p.mask), " but (B, H, Lq, Lk) is ",
          shape_text(full), "; each axis must be equal or 1");
}

// Kernels compare segments in lanes as wide as a score.
void check_segments(const Problem& p, const ConstView& ids, const char* name, int64_t length) {
  if (!ids) return;
  require(ids.dtype == DType::i64, "attend", name, " must be i64, got ", name_of(ids.dtype));
  require(ids.rank == 2 && (ids.shape[0] == p.batch || ids.shape[0] == 1) && ids.shape[1] == length,
          "attend", name, " has shape ", shape_text(ids), " but must be (", p.batch, " or 1, ",
          length, ")");
  for (int64_t b = 0; b < ids.shape[0]; ++b)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t segment = *ids.at<int64_t>(b, i);
      require(std::in_range<int32_t>(segment), "attend", name, " holds ", segment,
              ", which is no 32-bit integer");
    }
}

}  // namespace

Problem::Offsets Problem::offsets() const {
  bool any = false;
  Offsets all;
  for (const Sequence& s : sequences) {
    if (s.q_len == 0 || s.k_len == 0) continue;
    const PositionRange q = positions(q_positions, s.batch, s.q_begin, s.q_len, s.q_start);
    const PositionRange k = positions(k_positions, s.batch, s.k_begin, s.k_len, s.k_start);
    const Offsets own{k.first - q.last, k.last - q.first};
    all.first = any ? std::min(all.first, own.first) : own.first;
    all.last = any ? std::max(all.last, own.last) : own.last;
    any = true;
  }
  return all;
}

// Position ids may differ from the indices that causal and window compare.
Problem::Offsets Problem::visible_offsets() const {
  Offsets out = offsets();
  if (q_positions || k_positions) return out;
  bool prefixes = false;
  for (const Sequence& s : sequences) prefixes = prefixes || s.prefix > 0;
  if (causal && !prefixes) out.last = std::min<int64_t>(out.last, 0);
  if (window_right >= 0) out.last = std::min(out.last, window_right);
  if (window_left >= 0) out.first = std::max(out.first, -window_left);
  if (out.first > out.last) out.last = out.first;  // no pair is visible
  return out;
}

void validate(const Problem& p) {
  require(p.batch >= 0 && p.heads >= 0 && p.kv_heads >= 0 && p.q_len >= 0 && p.k_len >= 0, "attend",
          "sizes must be >= 0, got batch ", p.batch, ", heads ", p.heads, ", key/value heads ",
          p.kv_heads, ", query rows ", p.q_len, ", key rows ", p.k_len);
  require(p.head_dim >= 1, "attend", "head_dim must be >= 1, got ", p.head_dim);
  require(p.value_dim >= 1, "attend", "value_dim must be >= 1, got ", p.value_dim);
  if (p.heads > 0)
    require(p.kv_heads > 0 && p.heads % p.kv_heads == 0, "attend", "q has ", p.heads,
            " heads, which is no multiple of the ", p.kv_heads, " heads of k and v");
  require(p.window_left >= -1, "attend", "window_left must be >= -1, got ", p.window_left);
  require(p.window_right >= -1, "attend", "window_right must be >= -1, got ", p.window_right);
  check_sequences(p);
  check_mask(p);
  validate_positions("attend", "q_positions", p.q_positions, p.batch, p.q_len);
  validate_positions("attend", "k_positions", p.k_positions, p.batch, p.k_len);
  require(!p.q_segments == !p.k_segments, "attend", p.q_segments ? "q" : "k",
          "_segments are given without ", p.q_segments ? "k" : "q", "_segments");
  check_segments(p, p.q_segments, "q_segments", p.q_len);
  check_segments(p, p.k_segments, "k_segments", p.k_len);
}

void validate_positions(std::string_view scope, std::string_view name, const ConstView& ids,
                        int64_t batch, int64_t length) {
  if (!ids) return;
  require(ids.dtype == DType::i64, scope, name, " must be i64, got ", name_of(ids.dtype));
  const bool fits = (ids.rank == 2 || (ids.rank == 3 && ids.shape[2] >= 1)) &&
                    (ids.shape[0] == batch || ids.shape[0] == 1) && ids.shape[1] == length;
  require(fits, scope, name, " has shape ", shape_text(ids), " but must be (", batch, " or 1, ",
          length, ") or (", batch, " or 1, ", length, ", axes)");
  for (int64_t b = 0; b < ids.shape[0]; ++b)
    for (int64_t i = 0; i < length; ++i)
      for (int64_t axis = 0; axis < ids.shape[2]; ++axis) {
        const int64_t position = *ids.at<int64_t>(b, i, axis);
        require(position >= -kMaxPosition && position <= kMaxPosition, scope, name, " holds ",
                position, ", beyond ±2^60");
      }
}

}  // namespace locant::inline v0
