#include "locant/core/overlap.h"

#include <cstdlib>

namespace locant::inline v0 {
namespace {

// Bytes [begin, end), end exclusive.
struct Bytes {
  int64_t begin, end;
};

// The bytes that the axes accepted by `counts(stride in bytes)` sweep from the first element.
template <class Counts>
Bytes sweep(const ConstView& view, const Counts& counts) {
  const int64_t width = static_cast<int64_t>(size_of(view.dtype));
  const int64_t base = static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data));
  Bytes bytes{base, base + width};
  for (int axis = 0; axis < view.rank; ++axis) {
    const int64_t stride = view.strides[axis] * width;
    if (!counts(stride)) continue;
    (stride < 0 ? bytes.begin : bytes.end) += (view.shape[axis] - 1) * stride;
  }
  return bytes;
}

// Seen modulo `period` (in bytes), axes whose stride is a multiple of it stand still. If what
// remains of both views fits into one period without meeting, the views never meet.
bool disjoint_modulo(const ConstView& a, const ConstView& b, int64_t period) {
  const auto moves = [period](int64_t stride) { return stride % period != 0; };
  const Bytes x = sweep(a, moves), y = sweep(b, moves);
  const int64_t gap = ((y.begin - x.begin) % period + period) % period;  // from x to y, around
  return gap >= x.end - x.begin && period - gap >= y.end - y.begin;
}

}  // namespace

bool may_overlap(const ConstView& a, const ConstView& b) {
  if (a.size() == 0 || b.size() == 0 || a.data == nullptr || b.data == nullptr) return false;
  const auto all = [](int64_t) { return true; };
  const Bytes x = sweep(a, all), y = sweep(b, all);
  if (x.end <= y.begin || y.end <= x.begin) return false;
  for (const ConstView* view : {&a, &b}) {
    for (int axis = 0; axis < view->rank; ++axis) {
      const int64_t period =
          std::abs(view->strides[axis]) * static_cast<int64_t>(size_of(view->dtype));
      if (period != 0 && view->shape[axis] > 1 && disjoint_modulo(a, b, period)) return false;
    }
  }
  return true;
}

}  // namespace locant::inline v0
