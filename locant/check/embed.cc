#include "locant/check/embed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

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

std::vector<double> dense(const View& x) {
  std::vector<double> values;
  values.reserve(x.size());
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t l = 0; l < x.shape[1]; ++l)
      for (int64_t c = 0; c < x.shape[2]; ++c) values.push_back(element(x, b, l, c));
  return values;
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

}  // namespace

std::vector<EmbedAnswer> embed_answers(const CheckCase& check, const Encoding& encoding) {
  const uint64_t seed = static_cast<uint64_t>(check.number) * 8;  // streams 1 to 3 are attention's
  const Rows queries{check.q_len, check.q_start, seed + 4};
  const Rows keys{check.k_len, check.k_start, seed + 5};
  std::vector<EmbedAnswer> answers;
  for (const Rows& rows : {queries, keys})
    answers.push_back(check.dtype == DType::f64 ? answer_of<double>(check, encoding, rows)
                                                : answer_of<float>(check, encoding, rows));
  return answers;
}

}  // namespace locant::inline v0
