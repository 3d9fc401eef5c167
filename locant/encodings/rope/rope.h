// Rotary positions (Su et al. 2021), their scalings for longer contexts, and positions with axes.
//
//   S[i,j] = c·<R(pos(i))·q_i, R(pos(j))·k_j>,  c = 1/sqrt(d)
//   R(p) turns pair t of a head's first `rot` columns by the angle p·θ_t:
//     θ_t = base^(-2t/rot),  rot = int(head_dim·partial_rotary_factor)
//   pairs are columns (t, t + rot/2) (layout "half") or (2t, 2t + 1) ("interleaved").
//
// It depends on pos(i) - pos(j) only, and compiles to no terms: q and k are rotated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "locant/encodings/encoding.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

struct RopeConfig {
  int64_t heads = 1;
  int64_t head_dim = 64;
  double base = 10000;
  double partial_rotary_factor = 1;
  std::string layout = "half";
  std::string scaling = "none";
  double factor = 1;                  // s
  int64_t original_max_position = 0;  // L0, the length a model was trained for
  int64_t max_position = 0;           // yarn, longrope: s = max_position / L0 unless factor is set
  double beta_fast = 32, beta_slow = 1;                     // yarn
  bool truncate = true;                                     // yarn
  double attention_factor = 0;                              // yarn, longrope; 0: the paper's
  double mscale = 0, mscale_all_dim = 0;                    // yarn; 0: not given
  double low_freq_factor = 1, high_freq_factor = 4;         // llama3
  std::vector<double> short_factor = {}, long_factor = {};  // longrope, (rot/2) each
  std::string axes = "1d";
  std::vector<double> sections = {};  // pairs of each axis of a position
  std::string sections_layout = "contiguous";
};

// What a scaling makes of a length.
struct RopeFrequencies {
  std::vector<double> theta;  // (rot/2) angle per position
  double magnitude = 1;       // factor of all cosines and sines
};

struct RotateOptions {
  int64_t start = 0;         // position of the first row
  ConstView positions = {};  // or positions (B | 1, L) or (B | 1, L, axes), int64
  // dynamic, longrope: the length of the whole sequence; 0: its largest position here + 1.
  int64_t length = 0;
  Side side = Side::query;  // xpos: queries shrink where keys grow
  int64_t origin = 0;       // xpos: the position whose magnitude is 1
  bool inverse = false;     // turn back by the same angles, with the same magnitudes
};

class RopePhasors;  // rope_rotate.h

class LOCANT_API Rope final : public Encoding {
 public:
  static constexpr const char* kName = "rope";
  static constexpr const char* kClassName = "Rope";
  static constexpr const char* kSummary = "q and k turned by angles that grow with the position";
  static const Fields<RopeConfig>& description();
  static std::vector<FieldValues> cases();

  explicit Rope(const RopeConfig& config);

  const RopeConfig& config() const { return config_; }
  FieldValues fields() const override { return description().dump(config_); }
  int64_t position_axes() const override;

  // θ' and the magnitude for a sequence of so many positions.
  RopeFrequencies frequencies(int64_t length) const;

  // x (B, H, L, d), f32 or f64, any strides -> out, which may be x itself. For caches of rotated
  // keys and for use outside attend(); attend() rotates by itself.
  void rotate(const ConstView& x, const RotateOptions& options, const View& out) const;

  Prepared prepare(const Problem& problem, const ConstView& q, const ConstView& k) const override;
  void pullback(const Problem& problem, const Prepared& prepared, const View& dq, const View& dk,
                const TermGradients& dterms, ParameterGradients& gradients) const override;
  void reference(const ReferenceProblem<double>&, ReferenceResult<double>&) const override;
  void reference(const ReferenceProblem<float>&, ReferenceResult<float>&) const override;

 private:
  // The phasors of a sequence's queries and keys; they differ with xpos only.
  struct Turn {
    std::shared_ptr<const RopePhasors> query, key;
  };
  struct Plan;
  Turn make_turn(int64_t length) const;
  Turn turn(int64_t length) const;
  Plan make_plan(const Problem& problem, DType dtype) const;

  RopeConfig config_;
  Turn usual_, beyond_;  // of lengths up to L0; longrope's beyond L0
};

}  // namespace locant::inline v0
