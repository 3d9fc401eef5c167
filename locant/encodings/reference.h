// The plain-loop side of locant: dense copies, one sequence, one number type. Written to be read
// beside the papers and to check the kernels, so nothing here is shared with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace locant::inline v0 {

template <class Real>
struct ReferenceProblem {
  int64_t heads = 0, kv_heads = 0, q_len = 0, k_len = 0, head_dim = 0, value_dim = 0;
  std::vector<Real> q;                          // (heads, q_len, head_dim)
  std::vector<Real> k;                          // (kv_heads, k_len, head_dim)
  std::vector<Real> v;                          // (kv_heads, k_len, value_dim)
  int64_t position_axes = 1;                    // numbers of a position
  std::vector<int64_t> q_pos, k_pos;            // (q_len, position_axes), (k_len, position_axes)
  std::vector<int64_t> q_segments, k_segments;  // (q_len), (k_len), or both empty
  std::vector<uint8_t> allowed;                 // (heads, q_len, k_len)
  std::vector<Real> additive;                   // (heads, q_len, k_len) or empty
  std::vector<Real> keep;  // (heads, q_len, k_len): dropout's factors, or empty
  std::map<std::string, std::vector<Real>> parameters;
  Real scale = 0;  // 0: the encoding's own

  Real dot_qk(int64_t h, int64_t i, int64_t j) const {
    const int64_t g = h / (heads / kv_heads);
    Real sum = 0;
    for (int64_t c = 0; c < head_dim; ++c)
      sum += q[(h * q_len + i) * head_dim + c] * k[(g * k_len + j) * head_dim + c];
    return sum;
  }
  // c: that of the call, or else the encoding's.
  Real scale_or(Real own) const { return scale != 0 ? scale : own; }

  const Real* query(int64_t h, int64_t i) const { return &q[(h * q_len + i) * head_dim]; }
  const Real* key(int64_t h, int64_t j) const {
    return &k[((h / (heads / kv_heads)) * k_len + j) * head_dim];
  }
  const Real* value(int64_t h, int64_t j) const {
    return &v[((h / (heads / kv_heads)) * k_len + j) * value_dim];
  }
};

template <class Real>
struct ReferenceResult {
  std::vector<Real> out;                            // (heads, q_len, value_dim)
  std::vector<Real> lse;                            // (heads, q_len)
  std::vector<Real> probabilities;                  // (heads, q_len, k_len)
  std::map<std::string, std::vector<Real>> scores;  // each term apart, (heads, q_len, k_len)
};

// One term's scores: r.scores[name] = score(h, i, j) for every pair.
template <class Real, class Score>
void reference_scores(const ReferenceProblem<Real>& p, const char* name, const Score& score,
                      ReferenceResult<Real>& r) {
  std::vector<Real>& scores = r.scores[name];
  scores.reserve(p.heads * p.q_len * p.k_len);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.q_len; ++i)
      for (int64_t j = 0; j < p.k_len; ++j) scores.push_back(score(h, i, j));
}

// out, lse and probabilities from the terms' scores; value(h, i, j, c) is what P[i,j] multiplies.
//   S = sum of terms (+ additive mask);  P = softmax over allowed j (· keep);  O_i = sum_j
//   P[i,j]·value
// A row with nothing allowed gives zeros and lse = -inf.
template <class Real, class Value>
void reference_softmax(const ReferenceProblem<Real>& p, const Value& value,
                       ReferenceResult<Real>& r) {
  const Real infinity = std::numeric_limits<Real>::infinity();
  r.out.assign(p.heads * p.q_len * p.value_dim, 0);
  r.lse.assign(p.heads * p.q_len, -infinity);
  r.probabilities.assign(p.heads * p.q_len * p.k_len, 0);
  std::vector<Real> score(p.k_len);
  for (int64_t h = 0; h < p.heads; ++h) {
    for (int64_t i = 0; i < p.q_len; ++i) {
      const int64_t row = h * p.q_len + i;
      bool any = false;
      Real top = -infinity;
      for (int64_t j = 0; j < p.k_len; ++j) {
        if (!p.allowed[row * p.k_len + j]) continue;
        score[j] = p.additive.empty() ? Real(0) : p.additive[row * p.k_len + j];
        for (const auto& [name, term] : r.scores) score[j] += term[row * p.k_len + j];
        if (!any || score[j] > top) top = score[j];
        any = true;
      }
      if (!any) continue;
      Real sum = 0;
      for (int64_t j = 0; j < p.k_len; ++j) {
        if (!p.allowed[row * p.k_len + j]) continue;
        r.probabilities[row * p.k_len + j] = std::exp(score[j] - top);
        sum += r.probabilities[row * p.k_len + j];
      }
      r.lse[row] = top + std::log(sum);
      for (int64_t j = 0; j < p.k_len; ++j) {
        if (!p.allowed[row * p.k_len + j]) continue;
        Real& probability = r.probabilities[row * p.k_len + j];
        probability /= sum;
        if (!p.keep.empty()) probability *= p.keep[row * p.k_len + j];
        for (int64_t c = 0; c < p.value_dim; ++c)
          r.out[row * p.value_dim + c] += probability * value(h, i, j, c);
      }
    }
  }
}

// The same for plain values.
template <class Real>
void reference_softmax(const ReferenceProblem<Real>& p, ReferenceResult<Real>& r) {
  reference_softmax(
      p, [&](int64_t h, int64_t, int64_t j, int64_t c) { return p.value(h, j)[c]; }, r);
}

}  // namespace locant::inline v0
