#include "locant/encodings/rope/rope_rotate.h"

#include <algorithm>
#include <type_traits>

#include "locant/core/executor.h"
#include "locant/core/stored_type.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/rotate.h"

namespace locant::inline v0 {
namespace {

// Rows per work item: their cosines and sines stay in cache while all heads use them.
constexpr int64_t kRows = 64;

struct Item {
  const RopeRows* rows;
  int64_t first, count;  // of rows->length
};

// cosine, sine (count, pairs)
template <class Real>
void fill_angles(const RopeRotation& rotation, const Item& item, Real* cosine, Real* sine) {
  const RopeRows& rows = *item.rows;
  const ConstView& ids = rotation.positions;
  const int64_t pairs = rows.phasors->pairs();
  RopePhasors::Walk walk(*rows.phasors, rows.origin);
  for (int64_t n = 0; n < item.count; ++n) {
    const int64_t row = item.first + n;
    const int64_t counted = rows.start + row;  // one number for all axes
    const int64_t* position = &counted;
    int64_t stride = 0;
    if (ids) {
      position = ids.at<int64_t>(ids.shape[0] == 1 ? 0 : rows.batch, rows.begin + row);
      if (ids.rank == 3) stride = ids.strides[2];
    }
    walk.row(position, stride, cosine + n * pairs, sine + n * pairs);
  }
  if (rotation.inverse)
    for (int64_t n = 0; n < item.count * pairs; ++n) sine[n] = -sine[n];
}

// Some rows of all heads, (heads, rows, dim), as floats.
class FloatRows {
 public:
  FloatRows(const ConstView& like, int64_t rows, Arena& arena)
      : heads_(like.shape[1]), rows_(rows), dim_(like.shape[3]) {
    data_ = arena.take<float>(static_cast<size_t>(heads_ * rows * dim_));
  }

  float* data() const { return data_; }
  RotateBlock<float>::Strides strides() const { return {.head = rows_ * dim_, .row = dim_}; }

  void load(const ConstView& from, int64_t batch, int64_t first) {
    each(from, batch, first, [](float& x, const auto& stored) { x = static_cast<float>(stored); });
  }
  void store(const View& to, int64_t batch, int64_t first) {
    each(to, batch, first, [](float& x, auto& stored) {
      stored = static_cast<std::remove_reference_t<decltype(stored)>>(x);
    });
  }

 private:
  template <class V, class F>
  void each(const V& view, int64_t batch, int64_t first, const F& f) {
    with_stored_type(view.dtype, [&](auto stored) {
      for (int64_t h = 0; h < heads_; ++h)
        for (int64_t r = 0; r < rows_; ++r) {
          auto* at = view.template at<decltype(stored)>(batch, h, first + r);
          float* x = data_ + (h * rows_ + r) * dim_;
          for (int64_t c = 0; c < dim_; ++c) f(x[c], at[c * view.strides[3]]);
        }
    });
  }

  int64_t heads_, rows_, dim_;
  float* data_ = nullptr;
};

template <class Real>
void rotate_item(const RopeRotation& rotation, const Item& item) {
  Arena& arena = Arena::of_this_thread();
  const Arena::Scope scope(arena);
  const int64_t pairs = item.rows->phasors->pairs();
  Real* cosine = arena.take<Real>(item.count * pairs);
  Real* sine = arena.take<Real>(item.count * pairs);
  fill_angles(rotation, item, cosine, sine);

  const auto strides = [](const auto& x) -> typename RotateBlock<Real>::Strides {
    return {.head = x.strides[1], .row = x.strides[2], .column = x.strides[3]};
  };
  const int64_t batch = item.rows->batch, row = item.rows->begin + item.first;
  RotateBlock<Real> block;
  block.heads = rotation.from.shape[1];
  block.rows = item.count;
  block.dim = rotation.from.shape[3];
  block.cosine = cosine;
  block.sine = sine;
  block.pairs = pairs;
  block.interleaved = rotation.interleaved;
  const bool stored_as_real =
      rotation.from.dtype == dtype_of<Real>() && rotation.to.dtype == dtype_of<Real>();
  if constexpr (std::is_same_v<Real, float>) {
    if (!stored_as_real) {
      FloatRows rows(rotation.from, item.count, arena);
      rows.load(rotation.from, batch, row);
      block.from = block.to = rows.data();
      block.from_strides = block.to_strides = rows.strides();
      rotate_block(block);
      rows.store(rotation.to, batch, row);
      return;
    }
  }
  block.from = rotation.from.template at<Real>(batch, 0, row);
  block.to = rotation.to.template at<Real>(batch, 0, row);
  block.from_strides = strides(rotation.from);
  block.to_strides = strides(rotation.to);
  rotate_block(block);
}

}  // namespace

RopePhasors::RopePhasors(const RopeFrequencies& frequencies, const std::vector<double>& growth,
                         const std::vector<int64_t>& axis_of_pair)
    : pairs_(static_cast<int64_t>(frequencies.theta.size())) {
  const int64_t axes = 1 + *std::max_element(axis_of_pair.begin(), axis_of_pair.end());
  for (int64_t axis = 0; axis < axes; ++axis) {
    std::vector<int64_t> pairs;
    std::vector<double> theta, growth_of_axis;
    for (int64_t t = 0; t < pairs_; ++t) {
      if (axis_of_pair[t] != axis) continue;
      pairs.push_back(t);
      theta.push_back(frequencies.theta[t]);
      if (!growth.empty()) growth_of_axis.push_back(growth[t]);
    }
    axes_.push_back({Phasors(theta, growth_of_axis, frequencies.magnitude), pairs});
  }
}

RopePhasors::Walk::Walk(const RopePhasors& phasors, int64_t origin)
    : phasors_(phasors), cosine_(phasors.pairs_), sine_(phasors.pairs_) {
  for (const Axis& axis : phasors.axes_) walks_.emplace_back(axis.phasors, origin);
}

template <class Real>
void RopePhasors::Walk::row(const int64_t* position, int64_t stride, Real* cosine, Real* sine) {
  if (walks_.size() == 1) {
    walks_[0].row(*position, cosine, sine);
    return;
  }
  for (size_t axis = 0; axis < walks_.size(); ++axis) {
    const std::vector<int64_t>& pairs = phasors_.axes_[axis].pairs;
    walks_[axis].row(position[static_cast<int64_t>(axis) * stride], cosine_.data(), sine_.data());
    for (size_t n = 0; n < pairs.size(); ++n) {
      cosine[pairs[n]] = static_cast<Real>(cosine_[n]);
      sine[pairs[n]] = static_cast<Real>(sine_[n]);
    }
  }
}

void rotate_rows(const RopeRotation& rotation, const std::vector<RopeRows>& rows) {
  std::vector<Item> items;
  for (const RopeRows& some : rows)
    for (int64_t first = 0; first < some.length; first += kRows)
      items.push_back({&some, first, std::min(kRows, some.length - first)});
  executor()->parallel_for(static_cast<int64_t>(items.size()), [&](int64_t n, int) {
    if (rotation.from.dtype == DType::f64)
      rotate_item<double>(rotation, items[n]);
    else
      rotate_item<float>(rotation, items[n]);
  });
}

}  // namespace locant::inline v0
