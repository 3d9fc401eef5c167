// Masks: hidden scores become -inf by selection, never by addition, so that a NaN in a hidden key
// cannot survive.

#if defined(LOCANT_KERNELS_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_MASK_INL_H_
#undef LOCANT_KERNELS_MASK_INL_H_
#else
#define LOCANT_KERNELS_MASK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/core/view.h"
#include "locant/kernels/pack-inl.h"
#include "locant/terms/problem.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// s[begin, end) without `visible` becomes -inf.
template <class T>
HWY_INLINE void HideOutside(T* s, size_t begin, size_t end, const KeyRange& visible) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  const size_t from = std::clamp(static_cast<size_t>(visible.begin), begin, end);
  const size_t to = std::clamp(static_cast<size_t>(visible.end), from, end);
  std::fill(s + begin, s + from, kHidden);
  std::fill(s + to, s + end, kHidden);
}

// One row of an explicit mask on s[begin, end), which are the keys from first_key + begin on.
template <class T>
void ApplyMask(const ConstView& mask, int64_t batch, int64_t head, int64_t row, int64_t first_key,
               size_t begin, size_t end, T* s) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  const auto stride = [&](int axis) {  // axes of extent 1 are broadcast
    return mask.shape[axis] == 1 ? int64_t{0} : mask.strides[axis];
  };
  const int64_t step = stride(3);
  const int64_t offset = batch * stride(0) + head * stride(1) + row * stride(2) +
                         (first_key + static_cast<int64_t>(begin)) * step;
  const size_t n = end - begin;
  s += begin;
  if (mask.dtype == DType::boolean) {
    const uint8_t* visible = mask.at<uint8_t>() + offset;
    for (size_t j = 0; j < n; ++j) s[j] = visible[static_cast<int64_t>(j) * step] ? s[j] : kHidden;
    return;
  }
  WithStored(mask.dtype, [&](auto stored) HWY_ATTR {
    using S = decltype(stored);
    // Compared before it becomes T: a finite double that float32 cannot hold hides nothing.
    using Wide = std::conditional_t<std::is_same_v<S, double>, double, float>;
    const S* added = mask.at<S>() + offset;
    for (size_t j = 0; j < n; ++j) {
      const Wide value = added[static_cast<int64_t>(j) * step];
      s[j] =
          value == -std::numeric_limits<Wide>::infinity() ? kHidden : s[j] + static_cast<T>(value);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_MASK_INL_H_
