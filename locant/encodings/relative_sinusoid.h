// The position term of Transformer-XL and XLNet: <q_i + v, W_R·R_r>/sqrt(d), r = pos(i) - pos(j).
//
//   R_r = [sin(r·θ_0) ... sin(r·θ_{D/2-1}) | cos(r·θ_0) ... cos(r·θ_{D/2-1})],  D = d_model
//   θ_t = 10000^(-2t/D);  r may be negative
//
// W_R·R_r depends on weights and r only: a table with one row per offset pos(j) - pos(i) = -r.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "locant/encodings/checks.h"
#include "locant/encodings/encoding.h"
#include "locant/terms/problem.h"
#include "locant/terms/terms.h"

namespace locant::inline v0 {

class LOCANT_API RelativeSinusoid {
 public:
  // `reach`: offsets beyond which rows stay the same (r is clamped).
  RelativeSinusoid(std::string scope, int64_t heads, int64_t head_dim, int64_t d_model,
                   const Problem::Offsets& reach);

  // Keeps the table of these offsets for later calls of add_term.   weight W_R (heads·d, d_model)
  void keep(const ConstView& weight, const Problem::Offsets& offsets);
  void drop() { kept_.reset(); }

  // Adds the term "position" with the kept table if that has the problem's offsets in the precision
  // of its q, else with one made for this call.   v (heads, d)
  void add_term(const Problem& problem, const ConstView& weight, const ConstView& v,
                Prepared& prepared) const;

  // The transpose of add_term, for its term: dW_R += sum over rows of dT[row]·R_rᵀ, dv += d(plus).
  //   dweight (heads·d, d_model)   dv (heads, d)
  void pullback(const Projection& term, const TableGradient& dterm, const View& dweight,
                const View& dv) const;

 private:
  struct Table;

  Problem::Offsets clamped(const Problem::Offsets& offsets) const;
  std::shared_ptr<const Table> make(const ConstView& weight, const Problem::Offsets& offsets,
                                    DType dtype) const;

  std::string scope_;
  int64_t heads_, head_dim_, d_model_;
  Problem::Offsets reach_;
  std::shared_ptr<const Table> kept_;
};

// d_model of a configuration, where 0 stands for heads·head_dim; fails by name if it is odd or
// negative, or if one of the others is no size.
template <class Config>
int64_t checked_model_width(std::string_view scope, const Config& config) {
  check_heads(scope, config);
  require(config.d_model >= 0, scope, "d_model must be >= 0, got ", config.d_model);
  const int64_t width = config.d_model > 0 ? config.d_model : config.heads * config.head_dim;
  require(width % 2 == 0, scope, "d_model must be even: half sines, half cosines; got ", width);
  return width;
}

// u or v: a vector per head, added to queries.
inline Parameter added_vector(const char* name, int64_t heads, int64_t head_dim, const char* doc) {
  return {
      .name = name, .shape = {heads, head_dim}, .shape_in_words = "heads, head_dim", .doc = doc};
}

// The largest |r| that is told apart: clamp_len if it is > 0, else practically none.
LOCANT_API int64_t farthest_distance(int64_t clamp_len);

}  // namespace locant::inline v0
