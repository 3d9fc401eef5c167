// Packing: strided inputs of any type become contiguous panels of the computing type.

#if defined(LOCANT_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_PACK_INL_H_
#undef LOCANT_KERNELS_PACK_INL_H_
#else
#define LOCANT_KERNELS_PACK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "locant/core/view.h"
#include "locant/kernels/arena.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/prefetch.h"
#include "locant/kernels/stored-inl.h"
#include "locant/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

// A matrix (rows, cols) of some stored type inside a view.
struct Matrix {
  const void* data;
  DType dtype;
  int64_t row_stride, col_stride;

  // Rows and columns are the last two axes of a view; a and b index the ones before them.
  static Matrix of(const ConstView& view, int64_t a, int64_t b) {
    const int last = view.rank - 1;
    const int64_t offset = (view.rank > 3 ? a * view.strides[0] + b * view.strides[1]
                                          : (view.rank > 2 ? b * view.strides[0] : 0));
    return {static_cast<const std::byte*>(view.data) +
                offset * static_cast<int64_t>(size_of(view.dtype)),
            view.dtype, view.strides[last - 1], view.strides[last]};
  }

  template <class S>
  const S* row(int64_t r) const {
    return static_cast<const S*>(data) + r * row_stride;
  }
};

// Asks for `count` rows. Rows that are read a few elements at a time, several of them side by side
// and perhaps backwards (reversed tables), are too much for hardware prefetchers.
template <class T>
HWY_INLINE void PrefetchRows(const T* row, int64_t stride, size_t count, size_t width) {
  for (size_t r = 0; r < count; ++r, row += stride)
    for (size_t byte = 0; byte < width * sizeof(T); byte += 64)
      Prefetch(reinterpret_cast<const char*>(row) + byte);
}

// The same for rows that will be written, as this core's own. Another core may have used them last,
// and what it must give up would keep the stores waiting.
template <class T>
HWY_INLINE void PrefetchRowsToWrite(const T* row, int64_t stride, size_t count, size_t width) {
  for (size_t r = 0; r < count; ++r, row += stride)
    for (size_t byte = 0; byte < width * sizeof(T); byte += 64)
      PrefetchToWrite(reinterpret_cast<const char*>(row) + byte);
}

#if HWY_TARGET != HWY_SCALAR

// A square of 16-byte vectors: rows at `in`, times scale, become columns at `out`.
template <class T, class S>
HWY_INLINE void TransposeSquare(const S* in, int64_t stride, T scale, T* out, size_t out_stride) {
  const SquareTag<T> d;
  hn::Vec<SquareTag<T>> x[kSquare<T>];
  Unroll<kSquare<T>>([&](auto r) HWY_ATTR {
    x[r] = hn::Mul(hn::Set(d, scale), LoadAs(d, in + static_cast<int64_t>(r) * stride));
  });
  Transpose(x);
  Unroll<kSquare<T>>([&](auto c) HWY_ATTR { hn::StoreU(x[c], d, out + c * out_stride); });
}

#endif  // HWY_TARGET != HWY_SCALAR

// Rows [begin, begin + count) of m, `depth` wide -> panels (count / panel, depth, panel): a row of
// m becomes a column of its panel, times scale. The last panel is filled up with zeros.
template <class T>
void PackColumns(const Matrix& m, int64_t begin, size_t count, size_t depth, T scale, T* out) {
  constexpr size_t kP = kPanel<T>;
  WithStored(m.dtype, [&](auto stored) HWY_ATTR {
    using S = decltype(stored);
    for (size_t first = 0; first < count; first += kP, out += depth * kP) {
      const size_t width = std::min(kP, count - first);
      size_t r = 0;
#if HWY_TARGET != HWY_SCALAR
      if constexpr (kLoadable<S, T>) {
        constexpr size_t kSide = kSquare<T>;
        if (m.col_stride == 1) {
          for (; r + kSide <= width; r += kSide) {
            const S* in = m.row<S>(begin + static_cast<int64_t>(first + r));
            PrefetchRows(in + 2 * static_cast<int64_t>(kSide) * m.row_stride, m.row_stride, kSide,
                         depth);
            size_t t = 0;
            for (; t + kSide <= depth; t += kSide)
              TransposeSquare(in + t, m.row_stride, scale, out + t * kP + r, kP);
            for (; t < depth; ++t)
              for (size_t s = 0; s < kSide; ++s)
                out[t * kP + r + s] =
                    scale *
                    static_cast<T>(
                        in[static_cast<int64_t>(s) * m.row_stride + static_cast<int64_t>(t)]);
          }
        }
      }
#endif
      for (; r < width; ++r) {
        const S* in = m.row<S>(begin + static_cast<int64_t>(first + r));
        for (size_t t = 0; t < depth; ++t)
          out[t * kP + r] = scale * static_cast<T>(in[static_cast<int64_t>(t) * m.col_stride]);
      }
      for (; r < kP; ++r)
        for (size_t t = 0; t < depth; ++t) out[t * kP + r] = T(0);
    }
  });
}

// out[c] = scale·in[c], for any stored type and stride.
template <class T, class S>
HWY_INLINE void CopyRow(const S* in, int64_t stride, size_t width, T scale, T* out) {
  const hn::ScalableTag<T> d;
  size_t c = 0;
  if constexpr (kLoadable<S, T>) {
    if (stride == 1) {
      const Vec<T> factor = hn::Set(d, scale);
      for (; c + kLanes<T> <= width; c += kLanes<T>)
        hn::StoreU(hn::Mul(factor, LoadAs(d, in + c)), d, out + c);
    }
  }
  for (; c < width; ++c) out[c] = scale * static_cast<T>(in[static_cast<int64_t>(c) * stride]);
}

// Rows [begin, begin + count) of m, `width` wide -> panels (width / panel, count, panel): a row of
// m stays a row of every panel, times scale. Returns whether all values are finite.
template <class T>
bool PackRows(const Matrix& m, int64_t begin, size_t count, size_t width, T* out, T scale = 1) {
  constexpr size_t kP = kPanel<T>;
  const hn::ScalableTag<T> d;
  constexpr size_t kN = kLanes<T>;
  constexpr int64_t kRowsAhead = 8;
  Vec<T> lo = hn::Zero(d), hi = hn::Zero(d);  // x·0 is not zero where x is infinite or NaN
  WithStored(m.dtype, [&](auto stored) HWY_ATTR {
    using S = decltype(stored);
    for (size_t r = 0; r < count; ++r) {
      const S* in = m.row<S>(begin + static_cast<int64_t>(r));
      PrefetchRows(in + kRowsAhead * m.row_stride, m.row_stride, 1, width);
      T* to = out + r * kP;
      for (size_t col = 0; col < width; col += kP, to += count * kP) {
        const size_t cols = std::min(kP, width - col);
        CopyRow(in + static_cast<int64_t>(col) * m.col_stride, m.col_stride, cols, scale, to);
        std::fill(to + cols, to + kP, T(0));
        lo = hn::MulAdd(hn::Load(d, to), hn::Zero(d), lo);
        hi = hn::MulAdd(hn::Load(d, to + kN), hn::Zero(d), hi);
      }
    }
  });
  return hn::AllTrue(d, hn::Eq(hn::Add(lo, hi), hn::Zero(d)));
}

// The same in memory of the arena.
template <class T>
const T* PackedRows(const Matrix& m, int64_t begin, size_t count, size_t width, T scale,
                    Arena& arena) {
  constexpr size_t kP = kPanel<T>;
  T* out = arena.take<T>((width + kP - 1) / kP * kP * count);
  PackRows<T>(m, begin, count, width, out, scale);
  return out;
}

// out[c] = scale·in[c], where out holds T or a type that is loadable as T, with any stride.
template <class T>
HWY_INLINE void StoreRow(const T* in, size_t width, T scale, DType dtype, void* out,
                         int64_t stride) {
  const hn::ScalableTag<T> d;
  WithLoadable<T>(dtype, [&](auto stored) HWY_ATTR {
    using S = decltype(stored);
    S* to = static_cast<S*>(out);
    size_t c = 0;
    if (stride == 1)
      for (; c + kLanes<T> <= width; c += kLanes<T>)
        StoreAs(hn::Mul(hn::LoadU(d, in + c), hn::Set(d, scale)), d, to + c);
    for (; c < width; ++c) to[static_cast<int64_t>(c) * stride] = S(in[c] * scale);
  });
}

// Rows of a matrix of T, each contiguous.
template <class T>
struct Rows {
  const T* at = nullptr;
  ptrdiff_t stride = 0;
  const T* row(size_t r) const { return at + static_cast<ptrdiff_t>(r) * stride; }
};

template <class T>
Matrix AsMatrix(const Rows<T>& rows) {
  return {rows.at, dtype_of<T>(), rows.stride, 1};
}

// scale·(m[begin + r, :] + plus) as rows: those of m itself if nothing has to change, else a copy.
// plus.data null: nothing is added.
template <class T>
Rows<T> RowsOf(const Matrix& m, int64_t begin, size_t count, size_t width, T scale,
               const Matrix& plus, Arena& arena) {
  if (m.dtype == dtype_of<T>() && m.col_stride == 1 && scale == T(1) && plus.data == nullptr)
    return {m.row<T>(begin), m.row_stride};
  T* copy = arena.take<T>(count * width);
  WithStored(m.dtype, [&](auto stored) HWY_ATTR {
    using S = decltype(stored);
    for (size_t r = 0; r < count; ++r) {
      const S* in = m.row<S>(begin + static_cast<int64_t>(r));
      CopyRow(in, m.col_stride, width, plus.data == nullptr ? scale : T(1), copy + r * width);
    }
  });
  if (plus.data == nullptr) return {copy, static_cast<ptrdiff_t>(width)};
  WithStored(plus.dtype, [&](auto stored) HWY_ATTR {
    const auto* u = plus.row<decltype(stored)>(0);
    for (size_t r = 0; r < count; ++r)
      for (size_t c = 0; c < width; ++c) {
        T& x = copy[r * width + c];
        x = scale * (x + static_cast<T>(u[static_cast<int64_t>(c) * plus.col_stride]));
      }
  });
  return {copy, static_cast<ptrdiff_t>(width)};
}

// count <= kMaxRows rows, `stride` apart, as the micro-kernel reads them:
//   out[t·count + r] = in[r, t]
HWY_INLINE void Interleave(const float* in, int64_t stride, size_t count, size_t depth,
                           float* HWY_RESTRICT out) {
  size_t t = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr size_t kSide = kSquare<float>;
  static_assert(kMaxRows <= 2 * kSide);
  if (count >= kSide) {
    const size_t second = count - kSide;  // a square that may share rows with the first
    const float* lower = in + static_cast<int64_t>(second) * stride;
    for (; t + kSide <= depth; t += kSide) {
      TransposeSquare(in + t, stride, 1.0f, out + t * count, count);
      if (second > 0) TransposeSquare(lower + t, stride, 1.0f, out + t * count + second, count);
    }
  }
#endif
  for (; t < depth; ++t)
    for (size_t r = 0; r < count; ++r)
      out[t * count + r] = in[static_cast<int64_t>(r) * stride + static_cast<int64_t>(t)];
}

// Rows [begin, end) of x and a block of the depth from t on, in groups of the micro-kernel.
inline void InterleaveRows(const ConstView& x, int64_t begin, int64_t end, int64_t t, int64_t depth,
                           float* out) {
  for (int64_t row = begin, n; row < end; row += n, out += n * depth) {
    n = static_cast<int64_t>(NextRows(static_cast<size_t>(end - row)));
    const int64_t then = std::min<int64_t>(kMaxRows, end - row - n);
    PrefetchRows(x.at<float>(row + n, t), x.strides[0], static_cast<size_t>(then),
                 static_cast<size_t>(depth));
    Interleave(x.at<float>(row, t), x.strides[0], static_cast<size_t>(n),
               static_cast<size_t>(depth), out);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_PACK_INL_H_
