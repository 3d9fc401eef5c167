// One attention problem: sizes, the sequences of the batch, and who may see whom. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/terms/dropout.h"

namespace locant::inline v0 {

// A batch is a list of sequences over strided buffers. Right or left padding, packing and ragged
// decode are all the same thing: which rows belong together, and where their positions start.
struct Sequence {
  int64_t batch = 0;                 // index on the batch axis of q, k, v and out
  int64_t q_begin = 0, q_len = 0;    // its queries are rows [q_begin, q_begin + q_len)
  int64_t k_begin = 0, k_len = 0;    // its keys are rows [k_begin, k_begin + k_len)
  int64_t q_start = 0, k_start = 0;  // position of its first query and of its first key
  int64_t prefix = 0;                // its first `prefix` keys are visible whatever `causal` says
};

// Keys [begin, end) of a sequence, counted from its first key.
struct KeyRange {
  int64_t begin = 0, end = 0;
};

// Sizes and visibility of one call; attend() makes it from its arguments (layers/attend.h).
struct LOCANT_API Problem {
  int64_t batch = 0, heads = 0, kv_heads = 0;
  int64_t q_len = 0, k_len = 0;  // rows in the buffers, padding included
  int64_t head_dim = 0, value_dim = 0;
  std::vector<Sequence> sequences;

  bool causal = false;
  int64_t window_left = -1;   // keys at most this far behind the query; -1: no limit
  int64_t window_right = -1;  // keys at most this far ahead; -1: no limit

  // c, the factor of all products in the scores (not of biases), instead of the encoding's own.
  std::optional<double> scale;

  Dropout dropout;  // of the probabilities

  // Broadcastable to (batch, heads, q_len, k_len). Boolean: true means visible. Floating point:
  // added to the scaled scores; -inf means not visible.
  ConstView mask;

  // Arbitrary position ids, (batch | 1, q_len) and (batch | 1, k_len), int64; empty: q_start + i
  // and k_start + j. Encodings with terms that depend on them take the materialised path. A third
  // axis holds the numbers of a position that has several, such as time, height and width.
  ConstView q_positions, k_positions;

  // Segment ids (sentence A, sentence B, ...), (batch | 1, q_len) and (batch | 1, k_len), int64 of
  // 32-bit size: both or none. Encodings with a segment term ask whether two of them are equal.
  ConstView q_segments, k_segments;

  int64_t group() const { return heads / kv_heads; }  // query heads per key/value head

  // The keys that causal, window, prefix and length leave to query i of a sequence: an interval.
  // Indices are compared as i + q_start and j + k_start, never as position ids.
  KeyRange visible(const Sequence& s, int64_t i) const {
    const int64_t diagonal = i + s.q_start - s.k_start;
    KeyRange range{0, s.k_len};
    if (causal) range.end = std::max(diagonal + 1, s.prefix);
    if (window_left >= 0) range.begin = std::max<int64_t>(0, diagonal - window_left);
    if (window_right >= 0) range.end = std::min(range.end, diagonal + window_right + 1);
    range.end = std::clamp<int64_t>(range.end, 0, s.k_len);
    range.begin = std::min(range.begin, range.end);
    return range;
  }

  // The offsets pos(key) - pos(query) that occur: [first, last].
  struct Offsets {
    int64_t first = 0, last = 0;
  };
  Offsets offsets() const;

  // Those of them that causal and window leave to some pair; at least one.
  Offsets visible_offsets() const;
};

// Tile sizes, for tests that must cross several tiles at small lengths; 0 means the tuned size,
// and one beyond the length is the length.
struct Tiling {
  int64_t rows = 0;  // query rows per work item
  int64_t keys = 0;  // keys per block, rounded up to the kernel's panel width
};

// Differences of two positions, plus a length, stay far from the ends of 64 bits.
inline constexpr int64_t kMaxPosition = int64_t{1} << 60;

// Fails by name if sizes, sequences, masks or positions are inconsistent.
LOCANT_API void validate(const Problem& problem);

// The same for position ids alone: (batch | 1, length) or (batch | 1, length, axes), int64, or
// empty.
LOCANT_API void validate_positions(std::string_view scope, std::string_view name,
                                   const ConstView& ids, int64_t batch, int64_t length);

}  // namespace locant::inline v0
