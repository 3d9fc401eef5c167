#include "locant/encodings/gradient_sums.h"

namespace locant::inline v0 {
namespace {

template <class Sum, class Part>
void add(const View& sum, const ConstView& part) {
  const int64_t to = sum.strides[3], from = part.strides[3];
  for (int64_t a = 0; a < sum.shape[0]; ++a)
    for (int64_t b = 0; b < sum.shape[1]; ++b)
      for (int64_t c = 0; c < sum.shape[2]; ++c) {
        Sum* x = sum.at<Sum>(a, b, c);
        const Part* y = part.at<Part>(a, b, c);
        for (int64_t e = 0; e < sum.shape[3]; ++e) x[e * to] += static_cast<Sum>(y[e * from]);
      }
}

// Extents of 1 in front, so that the last axis is the innermost loop.
template <class AnyView>
AnyView four_axes(const AnyView& x) {
  AnyView out = x;
  const int added = 4 - x.rank;
  out.rank = 4;
  for (int axis = 0; axis < 4; ++axis) {
    out.shape[axis] = axis < added ? 1 : x.shape[axis - added];
    out.strides[axis] = axis < added ? 0 : x.strides[axis - added];
  }
  return out;
}

}  // namespace

void add_to(const View& sum, const ConstView& part) {
  require(sum.rank == part.rank && sum.shape == part.shape, "add_to", "cannot add ",
          shape_text(part), " to ", shape_text(sum));
  const View to = four_axes(sum);
  const ConstView from = four_axes(part);
  if (to.dtype == DType::f64) {
    from.dtype == DType::f64 ? add<double, double>(to, from) : add<double, float>(to, from);
  } else {
    from.dtype == DType::f64 ? add<float, double>(to, from) : add<float, float>(to, from);
  }
}

}  // namespace locant::inline v0
