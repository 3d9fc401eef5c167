// Conformance of encodings that are added to the input: embed() against embed_reference().
#pragma once

#include <string>
#include <vector>

#include "locant/check/check.h"
#include "locant/encodings/encoding.h"

namespace locant::inline v0 {

struct EmbedAnswer {
  std::vector<double> got, wanted;  // (B, L, D)
  double tolerance = 0;             // relative to max(1, |wanted|)
  std::string failure;              // what else went wrong, or empty
};

// Embeds inputs of the case's lengths, starts, padding, layout and number type: first as its
// queries stand, then as its keys do. Where the reference knows no such position, embed() must fail
// too, and `wanted` is the untouched output. Tolerance: two roundings of the result, and the
// rounding of the angle at the farthest position.
std::vector<EmbedAnswer> embed_answers(const CheckCase& check, const Encoding& encoding);

// The change of <out, dout> along a random direction of the parameter, by embed_pullback() and by
// embed_reference(), which is linear in it. `size` is the gradient's length, the unit of errors.
struct EmbedGradient {
  double got = 0, wanted = 0, size = 0;
  std::string failure;
};
std::vector<EmbedGradient> embed_gradients(const CheckCase& check, const Encoding& encoding);

}  // namespace locant::inline v0
