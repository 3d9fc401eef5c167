#include "locant/check/embed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "locant/check/inputs.h"
#include "locant/check/random.h"

namespace locant::inline v0 {
namespace {

constexpr int64_t kBatch = 4;

struct Rows {
  int64_t length, start;
  uint64_t seed;
};

// x (B, L, D) in the case's layout, where its tokens stand, and out; views point into the object.
template <class Real>
class EmbedInputs {
 public:
  EmbedInputs(const CheckCase& check, const Rows& rows, int64_t dim, int64_t padding_idx)
      : rows_(rows),
        lengths_{rows.length, std::max(rows.length - 13, rows.length / 2), 0,
                 std::min<int64_t>(rows.length, 9)} {
    make_tensors(check, dim);
    switch (check.batch) {
      case BatchKind::full:
        options.start = rows.start;
        break;
      case BatchKind::right_padded:
      case BatchKind::left_padded:
        if (padding_idx >= 0)
          make_pads(check.batch == BatchKind::left_padded);
        else
          make_positions(check.batch == BatchKind::left_padded);
        break;
      case BatchKind::packed:
        make_restarting_positions();
        break;
    }
  }
  EmbedInputs(const EmbedInputs&) = delete;
  EmbedInputs& operator=(const EmbedInputs&) = delete;

  View x, out;  // out is x itself in the last layout
  EmbedOptions options;

 private:
  void make_tensors(const CheckCase& check, int64_t D) {
    const int64_t L = rows_.length;
    const bool slice = check.layout == LayoutKind::fused_qkv;
    const int64_t row = slice ? 3 * D : D;  // elements from token to token
    x_values_.resize(kBatch * L * row);
    Random random(rows_.seed);
    for (Real& value : x_values_) value = static_cast<Real>(random.symmetric());
    out_values_.assign(x_values_.size(), Real(12345));
    // Contiguous, channels first, or a slice of wider rows.
    const Extents strides =
        check.layout == LayoutKind::blhd ? Extents{L * D, 1, L, 0} : Extents{L * row, row, 1, 0};
    const Extents shape = {kBatch, L, D, 1};
    const auto tokens = [&](std::vector<Real>& values) {
      return View(values.data() + (slice ? D : 0), dtype_of<Real>(), std::span(shape).first(3),
                  std::span(strides).first(3));
    };
    x = tokens(x_values_);
    out = slice ? x : tokens(out_values_);
    if (check.poisoned)
      *x.template at<Real>(1, L / 2, D / 2) = std::numeric_limits<Real>::quiet_NaN();
  }

  void make_pads(bool left) {
    const int64_t L = rows_.length;
    pads_ = std::make_unique<bool[]>(kBatch * L);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t l = 0; l < L; ++l)
        pads_[b * L + l] = left ? l < L - lengths_[b] : l >= lengths_[b];
    options.start = rows_.start;
    options.pads = view(pads_.get(), {kBatch, L});
  }

  // Padding takes the position of its neighbour.
  void make_positions(bool left) {
    const int64_t L = rows_.length;
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t l = 0; l < L; ++l)
        positions_.push_back(rows_.start + (left ? std::max<int64_t>(0, l - (L - lengths_[b]))
                                                 : std::min(l, lengths_[b])));
    options.positions = view(positions_.data(), {kBatch, L});
  }

  void make_restarting_positions() {
    const int64_t L = rows_.length, cut = L * 2 / 5;
    for (int64_t l = 0; l < L; ++l) positions_.push_back(rows_.start + (l < cut ? l : l - cut));
    options.positions = view(positions_.data(), {1, L});
  }

  Rows rows_;
  int64_t lengths_[kBatch];
  std::vector<Real> x_values_, out_values_;
  std::unique_ptr<bool[]> pads_;
  std::vector<int64_t> positions_;
};

// As the case's queries stand, and as its keys do.
std::array<Rows, 2> rows_of(const CheckCase& check) {
  const uint64_t seed = static_cast<uint64_t>(check.number) * 8;  // streams 1 to 4 are attention's
  return {Rows{check.q_len, check.q_start, seed + 5}, Rows{check.k_len, check.k_start, seed + 6}};
}

template <class Real>
EmbedAnswer answer_of(const CheckCase& check, const Encoding& encoding, const Rows& rows) {
  const int64_t padding_idx = std::get<int64_t>(encoding.fields().at("padding_idx"));
  const EmbedInputs<Real> inputs(check, rows, encoding.embed_dim(), padding_idx);
  const double farthest = std::abs(static_cast<double>(rows.start)) +
                          static_cast<double>(rows.length + std::max<int64_t>(0, padding_idx + 1));
  EmbedAnswer answer;
  answer.tolerance = 4 * std::numeric_limits<Real>::epsilon() + 0x1p-50 * farthest;

  std::vector<double> values(inputs.x.size());
  bool in_range = true;
  try {
    encoding.embed_reference(inputs.x, inputs.options,
                             view(values.data(), {kBatch, rows.length, encoding.embed_dim()}));
  } catch (const std::invalid_argument&) {
    in_range = false;
    values = dense(inputs.out);
  }
  answer.wanted = std::move(values);
  try {
    encoding.embed(inputs.x, inputs.options, inputs.out);
    if (!in_range) answer.failure = "embed took a position that the reference refuses; ";
  } catch (const std::invalid_argument& error) {
    if (in_range) answer.failure = std::string(error.what()) + "; ";
  }
  answer.got = dense(inputs.out);
  return answer;
}

// What embed_reference makes of `values` as the one parameter, times dout: linear in the values.
double weighted_sum(const CheckCase& check, const std::string& parameter, const ConstView& values,
                    const ConstView& zeros, const EmbedOptions& options,
                    const std::vector<double>& dout) {
  const std::unique_ptr<Encoding> encoding = make_encoding(check.encoding, check.fields);
  encoding->set(parameter, values);
  std::vector<double> out(dout.size());
  encoding->embed_reference(zeros, options,
                            view(out.data(), {zeros.shape[0], zeros.shape[1], zeros.shape[2]}));
  return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
}

template <class Real>
EmbedGradient gradient_of(const CheckCase& check, const Encoding& encoding, const Rows& rows) {
  const int64_t padding_idx = std::get<int64_t>(encoding.fields().at("padding_idx"));
  EmbedInputs<Real> inputs(check, rows, encoding.embed_dim(), padding_idx);
  EmbedGradient result;
  ParameterGradients gradients = encoding.zero_gradients();
  const std::vector<double> dout = dense(inputs.x);
  bool refused = false;
  try {
    encoding.embed_pullback(inputs.x, inputs.options, gradients);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  const std::vector<double> nothing(dout.size());
  const ConstView zeros = view(nothing.data(), {kBatch, rows.length, encoding.embed_dim()});
  for (const auto& [name, gradient] : gradients) {
    const std::vector<double> got = dense(gradient.view());
    std::vector<double> direction(got.size());
    Random random(rows.seed + 1000);
    for (double& x : direction) x = random.symmetric();
    const ConstView values(direction.data(), DType::f64,
                           std::span(gradient.view().shape.data(), gradient.view().rank));
    try {
      result.wanted = weighted_sum(check, name, values, zeros, inputs.options, dout);
      if (refused) result.failure = "embed_pullback refused what the reference takes; ";
    } catch (const std::invalid_argument&) {
      if (!refused) result.failure = "embed_pullback took what the reference refuses; ";
    }
    for (size_t n = 0; n < got.size(); ++n) {
      result.got += got[n] * direction[n];
      result.size += got[n] * got[n];
    }
  }
  result.size = std::sqrt(result.size);
  return result;
}

}  // namespace

std::vector<EmbedGradient> embed_gradients(const CheckCase& check, const Encoding& encoding) {
  std::vector<EmbedGradient> gradients;
  for (const Rows& rows : rows_of(check))
    gradients.push_back(check.dtype == DType::f64 ? gradient_of<double>(check, encoding, rows)
                                                  : gradient_of<float>(check, encoding, rows));
  return gradients;
}

std::vector<EmbedAnswer> embed_answers(const CheckCase& check, const Encoding& encoding) {
  std::vector<EmbedAnswer> answers;
  for (const Rows& rows : rows_of(check))
    answers.push_back(check.dtype == DType::f64 ? answer_of<double>(check, encoding, rows)
                                                : answer_of<float>(check, encoding, rows));
  return answers;
}

}  // namespace locant::inline v0
