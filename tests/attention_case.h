// One attention call with random inputs, and its comparison with the encoding's float64 reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "locant/encodings/registry.h"
#include "locant/layers/attend.h"
#include "tests/stored_tensor.h"

namespace locant {

struct Sizes {
  int64_t batch = 1, heads = 2, kv_heads = 0, q_len = 1, k_len = 1;  // kv_heads 0: as many as heads
  int64_t dim = 8, value_dim = 0;                                    // value_dim 0: dim
};

inline std::string text_of(const Sizes& s) {
  return "B=" + std::to_string(s.batch) + " H=" + std::to_string(s.heads) +
         " Lq=" + std::to_string(s.q_len) + " Lk=" + std::to_string(s.k_len) +
         " d=" + std::to_string(s.dim) + " dv=" + std::to_string(s.value_dim);
}

inline DType computed_in(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

class AttentionCase {
 public:
  AttentionCase(const EncodingEntry& entry, DType dtype, Sizes s, uint64_t seed = 1)
      : label(entry.name + " " + name_of(dtype) + " " + text_of(s)),
        encoding(entry.make({{"heads", s.heads}, {"head_dim", s.dim}})),
        q(dtype, {s.batch, s.heads, s.q_len, s.dim}, seed),
        k(dtype, {s.batch, kv_heads(s), s.k_len, s.dim}, seed + 1),
        v(dtype, {s.batch, kv_heads(s), s.k_len, value_dim(s)}, seed + 2),
        out(computed_in(dtype), {s.batch, s.heads, s.q_len, value_dim(s)}),
        lse(computed_in(dtype), {s.batch, s.heads, s.q_len}) {
    for (const Parameter& parameter : encoding->parameters()) {
      // What a matrix makes should be of the size of a table's entries.
      const double size = 0.5 / std::sqrt(static_cast<double>(parameter.fan_in));
      tables.emplace_back(dtype, parameter.shape, seed += 10, size);
      encoding->set(parameter.name, tables.back().view());
    }
  }

  // The fused call into out and lse.
  void run() {
    options.lse = lse.view();
    attend(q.view(), k.view(), v.view(), *encoding, options, out.view());
  }

  // Runs, and expects out and lse within 2 × the error of naive float32 loops + 1e-6, or 1e-12 in
  // float64, of the reference. Returns the worst error of out.
  double expect_reference() {
    run();
    const Answer exact = answer_of(attend_reference, DType::f64);
    double out_tolerance = 1e-12, lse_tolerance = 1e-12;
    if (computed_in(q.view().dtype) == DType::f32) {
      const Answer naive = answer_of(attend_naive_f32, DType::f32);
      out_tolerance = 2 * worst_error(naive.out, exact.out) + 1e-6;
      lse_tolerance = 2 * worst_error(naive.lse, exact.lse) + 1e-6;
    }
    EXPECT_TRUE(std::isfinite(out_tolerance + lse_tolerance)) << label << ": no yardstick";
    const double error = worst_error(out.values(), exact.out);
    EXPECT_LE(error, out_tolerance) << label;
    EXPECT_LE(worst_error(lse.values(), exact.lse), lse_tolerance) << label;
    return error;
  }

  std::string label;
  std::unique_ptr<Encoding> encoding;
  StoredTensor q, k, v, out, lse;
  std::deque<StoredTensor> tables;
  AttendOptions options;

 private:
  struct Answer {
    std::vector<double> out, lse;
  };
  using Function = void (*)(const ConstView&, const ConstView&, const ConstView&, const Encoding&,
                            const AttendOptions&, const View&);

  static int64_t kv_heads(const Sizes& s) { return s.kv_heads > 0 ? s.kv_heads : s.heads; }
  static int64_t value_dim(const Sizes& s) { return s.value_dim > 0 ? s.value_dim : s.dim; }

  Answer answer_of(Function function, DType dtype) const {
    const auto like = [dtype](const StoredTensor& x) {
      const View view = x.view();
      return StoredTensor(dtype, {view.shape.begin(), view.shape.begin() + view.rank});
    };
    const StoredTensor own_out = like(out), own_lse = like(lse);
    AttendOptions own = options;
    own.lse = own_lse.view();
    function(q.view(), k.view(), v.view(), *encoding, own, own_out.view());
    return {own_out.values(), own_lse.values()};
  }

  // Largest difference, relative to values beyond 1; infinite where one is finite alone.
  static double worst_error(const std::vector<double>& x, const std::vector<double>& wanted) {
    double worst = 0;
    for (size_t n = 0; n < x.size(); ++n) {
      if (x[n] == wanted[n] || (std::isnan(x[n]) && std::isnan(wanted[n]))) continue;
      if (!std::isfinite(x[n]) || !std::isfinite(wanted[n])) return INFINITY;
      worst = std::max(worst, std::abs(x[n] - wanted[n]) / std::max(1.0, std::abs(wanted[n])));
    }
    return worst;
  }
};

inline constexpr DType kFloatingTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

// The encodings of the registry that can have such heads: rotations, for one, need an even size.
inline std::vector<const EncodingEntry*> encodings_with(int64_t heads, int64_t head_dim) {
  std::vector<const EncodingEntry*> out;
  for (const EncodingEntry& entry : encodings()) {
    try {
      entry.make({{"heads", heads}, {"head_dim", head_dim}});
      out.push_back(&entry);
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("head_dim"), std::string::npos) << error.what();
    }
  }
  EXPECT_GE(out.size(), 5u) << "most encodings take any head size";
  return out;
}

}  // namespace locant
