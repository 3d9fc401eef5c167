#include "locant/models/memory.h"

#include <algorithm>

#include "locant/core/error.h"
#include "locant/core/executor.h"

namespace locant::inline v0 {
namespace {

constexpr const char* kScope = "model";

void check_mems(const ModelInput& input, const ModelInfo& info) {
  require(input.mems.size() == input.ids.size(), kScope, "mems has ", input.mems.size(),
          " sequences but ids has ", input.ids.size());
  for (size_t n = 0; n < input.mems.size(); ++n) {
    const ConstView& mem = input.mems[n];
    require(mem.rank == 3 && mem.dtype == DType::f32 && mem.shape[0] == info.layers &&
                mem.shape[2] == info.hidden_size && mem.strides[2] == 1,
            kScope, "mems[", n, "] must be f32 (layers, M, D) = (", info.layers, ", M, ",
            info.hidden_size, ") of contiguous rows, got ", name_of(mem.dtype), " ",
            shape_text(mem));
  }
}

}  // namespace

Memories::Memories(const ModelInput& input, const ModelInfo& info, const Batch& batch,
                   int64_t zeros)
    : info_(info), mems_(input.mems), sequences_(batch.sequences) {
  if (!mems_.empty()) check_mems(input, info);
  for (size_t n = 0; n < sequences_.size(); ++n) {
    const int64_t length = mems_.empty() ? zeros : mems_[n].shape[1];
    lengths_.push_back(length);
    Sequence& s = sequences_[n];
    s.k_begin = rows_;
    s.k_len = length + s.q_len;
    s.q_start = length;
    rows_ += s.k_len;
  }
}

int64_t Memories::longest() const {
  int64_t longest = 0;
  for (const Sequence& s : sequences_) longest = std::max(longest, s.k_len);
  return longest;
}

std::vector<int64_t> Memories::join(const std::vector<int64_t>& tokens, int64_t fill) const {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(rows_));
  for (const Sequence& s : sequences_) {
    out.insert(out.end(), static_cast<size_t>(s.q_start), fill);
    out.insert(out.end(), tokens.begin() + s.q_begin, tokens.begin() + s.q_begin + s.q_len);
  }
  return out;
}

ConstView Memories::join(int64_t layer, const ConstView& x, FloatBuffer& buffer) const {
  const int64_t width = x.shape[1];
  if (rows_ == x.shape[0]) return x;
  const View out = buffer.take(rows_, width);
  executor()->parallel_for(static_cast<int64_t>(sequences_.size()), [&](int64_t n, int) {
    const Sequence& s = sequences_[n];
    for (int64_t row = 0; row < s.q_start; ++row) {
      float* to = out.at<float>(s.k_begin + row);
      if (mems_.empty())
        std::fill_n(to, width, 0.0f);
      else
        std::copy_n(mems_[n].at<float>(layer, row), width, to);
    }
    for (int64_t row = 0; row < s.q_len; ++row)
      std::copy_n(x.at<float>(s.q_begin + row), width, out.at<float>(s.k_begin + s.q_start + row));
  });
  return out;
}

void Memories::keep(int64_t layer, const ConstView& x, const MemoryRule& rule,
                    std::vector<Tensor>& mems) const {
  const int64_t width = x.shape[1];
  mems.resize(sequences_.size());
  for (size_t n = 0; n < sequences_.size(); ++n) {
    const Sequence& s = sequences_[n];
    const int64_t fresh = rule.reuse_len > 0 ? std::min(rule.reuse_len, s.q_len) : s.q_len;
    const int64_t all = s.q_start + fresh;
    const int64_t count = rule.mem_len > 0 ? std::min(rule.mem_len, all) : all;
    if (layer == 0) mems[n] = Tensor(DType::f32, {info_.layers, count, width});
    for (int64_t row = 0; row < count; ++row) {
      const int64_t from = all - count + row;
      float* to = mems[n].view().at<float>(layer, row);
      if (from >= s.q_start)
        std::copy_n(x.at<float>(s.q_begin + from - s.q_start), width, to);
      else if (!mems_.empty())  // else zeros, as it is already
        std::copy_n(mems_[n].at<float>(layer, from), width, to);
    }
  }
}

}  // namespace locant::inline v0
