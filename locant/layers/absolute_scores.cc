// The four parts of an absolute encoding's score: each input and its positions are projected apart,
// in float64, and every query part meets every key part.
#include <string>
#include <utility>

#include "locant/core/executor.h"
#include "locant/layers/analysis.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "absolute_scores";

void check_tensor(const char* name, const ConstView& x) {
  require(x.dtype != DType::boolean && x.dtype != DType::i64, kScope, name,
          " must be floating point, got ", name_of(x.dtype));
  require(x.data != nullptr || x.size() == 0, kScope, name, " must not be null");
}

void check_tokens(const char* name, const ConstView& x, int64_t D) {
  require(x.rank == 3 && x.shape[2] == D, kScope, name, " must be (B, L, ", D, "), got shape ",
          shape_text(x));
  check_tensor(name, x);
}

void check_weights(const char* name, const ConstView& w, int64_t d, int64_t D) {
  require(w.rank == 2 && w.shape[0] % d == 0 && w.shape[1] == D, kScope, name, " must be (heads·",
          d, ", ", D, "), got shape ", shape_text(w));
  check_tensor(name, w);
}

// PE of every token of x, (B, L, D): what the encoding adds to zeros.
std::vector<double> positions_of(const Encoding& encoding, const ConstView& x,
                                 const EmbedOptions& options) {
  std::vector<double> p(x.size(), 0.0);
  const View all = view(p.data(), {x.shape[0], x.shape[1], x.shape[2]});
  encoding.embed(all, options, all);
  return p;
}

// W x for every token, kept as (B, L, N) and seen as (B, N/d, L, d).
struct Projected {
  std::vector<double> values;
  ConstView heads;

  Projected(const ConstView& x, const ConstView& w, int64_t d)
      : values(x.shape[0] * x.shape[1] * w.shape[0], 0.0) {
    const int64_t B = x.shape[0], L = x.shape[1], D = x.shape[2], N = w.shape[0];
    std::vector<double> columns(D * N);  // Wᵀ, for the inner loop
    for (int64_t c = 0; c < D; ++c)
      for (int64_t n = 0; n < N; ++n) columns[c * N + n] = element(w, n, c);
    executor()->parallel_for(B * L, [&](int64_t row, int) {
      double* out = values.data() + row * N;
      for (int64_t c = 0; c < D; ++c) {
        const double factor = element(x, row / L, row % L, c);
        for (int64_t n = 0; n < N; ++n) out[n] += factor * columns[c * N + n];
      }
    });
    heads = ConstView(values.data(), DType::f64, Extents{B, N / d, L, d}, Extents{L * N, d, N, 1});
  }
  Projected(const Projected&) = delete;
  Projected& operator=(const Projected&) = delete;
};

// c·<q_i, k_j> of every pair: once the input is embedded, an absolute encoding adds nothing.
std::vector<double> products(const Projected& q, const Projected& k, const Encoding& encoding,
                             const std::optional<double>& scale) {
  AttendOptions options;
  options.scale = scale;
  std::vector<double> unused(q.values.size());
  Materialized result = attend_materialized(q.heads, k.heads, k.heads, encoding, options, {},
                                            View(unused.data(), DType::f64, q.heads.shape));
  return result.scores.empty() ? std::vector<double>() : std::move(result.scores.front().second);
}

}  // namespace

AbsoluteScores absolute_scores(const ConstView& x_q, const ConstView& x_k, const Encoding& encoding,
                               const ConstView& w_q, const ConstView& w_k,
                               const AbsoluteScoresOptions& options) {
  require(encoding.embed_dim() > 0, kScope, encoding.name(),
          " adds nothing to the input, so its scores have other parts: see attend_materialized()");
  const int64_t D = encoding.embed_dim();
  const int64_t d = std::get<int64_t>(encoding.fields().at("head_dim"));
  check_tokens("x_q", x_q, D);
  check_tokens("x_k", x_k, D);
  check_weights("w_q", w_q, d, D);
  check_weights("w_k", w_k, d, D);
  const std::vector<double> p_q = positions_of(encoding, x_q, options.query);
  const std::vector<double> p_k = positions_of(encoding, x_k, options.key);
  const Projected content_q(x_q, w_q, d), content_k(x_k, w_k, d);
  const Projected position_q(view(p_q.data(), {x_q.shape[0], x_q.shape[1], D}), w_q, d);
  const Projected position_k(view(p_k.data(), {x_k.shape[0], x_k.shape[1], D}), w_k, d);
  return {.content_content = products(content_q, content_k, encoding, options.scale),
          .content_position = products(content_q, position_k, encoding, options.scale),
          .position_content = products(position_q, content_k, encoding, options.scale),
          .position_position = products(position_q, position_k, encoding, options.scale)};
}

}  // namespace locant::inline v0
