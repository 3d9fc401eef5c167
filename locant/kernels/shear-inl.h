// Shear and unshear: between products over table rows and scores over offsets.
//
//   shear    S[i,j] += m·G[i, row(d)]   (query side)     S[i,j] += m·G[row(d), j]   (key side)
//   unshear  W[i, row] = sum of P[i,j] over the j with row(d) = row
//
// A strip holds row(d) - lo for consecutive offsets; along a row of S it is read upwards from
// strip[e]. It never decreases. On the query side, where it is constant, or rises by one per
// offset, or by at most one, there is something faster than a gather; on the key side the rows of
// a group share their reads, whatever the strip.

#if defined(LOCANT_KERNELS_SHEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCANT_KERNELS_SHEAR_INL_H_
#undef LOCANT_KERNELS_SHEAR_INL_H_
#else
#define LOCANT_KERNELS_SHEAR_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "locant/kernels/gemm-inl.h"
#include "locant/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

template <class T>
using Index = hwy::MakeSigned<T>;  // as wide as T, so that a vector of rows matches one of scores

enum class Slope { constant, linear, unit, any };

// How a strip behaves on [first, last].
template <class T>
HWY_INLINE Slope SlopeOf(const Index<T>* strip, size_t first, size_t last, bool unit_steps) {
  const Index<T> rise = strip[last] - strip[first];
  if (rise == 0) return Slope::constant;
  if (!unit_steps) return Slope::any;
  return rise == static_cast<Index<T>>(last - first) ? Slope::linear : Slope::unit;
}

// G[0, strip[0 .. N)] for one row g of G.
template <Slope kSlope, class T>
HWY_INLINE Vec<T> ReadRow(const T* g, const Index<T>* strip) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<Index<T>> di;
  if constexpr (kSlope == Slope::constant) {
    return hn::Set(d, g[strip[0]]);
  } else if constexpr (kSlope == Slope::linear) {
    return hn::LoadU(d, g + strip[0]);
  } else if constexpr (kSlope == Slope::unit) {
    // N offsets touch at most N neighbouring rows: one load, one permutation.
    const auto rows = hn::Sub(hn::LoadU(di, strip), hn::Set(di, strip[0]));
    return hn::TableLookupLanes(hn::LoadU(d, g + strip[0]), hn::IndicesFromVec(d, rows));
  } else {
    return hn::GatherIndex(d, g, hn::LoadU(di, strip));
  }
}

// Lane l of x[y] becomes lane l of x[y + l], for the kCount - N + 1 first y: one blend per bit of
// l.
template <size_t kBit, size_t kCount, class T>
HWY_INLINE void ClimbByLane(Vec<T>* x) {
  if constexpr (kBit < kLanes<T>) {
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<Index<T>> di;
    const auto climbs =
        hn::RebindMask(d, hn::TestBit(hn::Iota(di, 0), hn::Set(di, static_cast<Index<T>>(kBit))));
    Unroll<kCount - kBit>([&](auto y)
                              HWY_ATTR { x[y] = hn::IfThenElse(climbs, x[y + kBit], x[y]); });
    ClimbByLane<2 * kBit, kCount - kBit, T>(x);
  }
}

// x[y], lane l = G[strip[y + l], l] for y < kRows: what kRows neighbouring queries read, the last
// of them first. g (table rows, panel), at one vector of the panel.  x (N + kRows - 1): scratch,
// too. N + kRows - 1 loads serve all of them, whatever the strip's steps.
template <size_t kRows, class T>
HWY_INLINE void ReadDiagonals(const T* g, const Index<T>* strip, Vec<T>* x) {
  const hn::ScalableTag<T> d;
  constexpr size_t kCount = kLanes<T> + kRows - 1;
  Unroll<kCount>(
      [&](auto y) HWY_ATTR { x[y] = hn::Load(d, g + static_cast<size_t>(strip[y]) * kPanel<T>); });
  ClimbByLane<1, kCount, T>(x);
}

// The transpose of ClimbByLane: lane l of x[y] goes to lane l of x[y + l]; kCount of them are
// given, kCount + N - 1 come out, zero where nothing went.
template <size_t kBit, size_t kCount, class T>
HWY_INLINE void FallByLane(Vec<T>* x) {
  if constexpr (kBit > 0) {
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<Index<T>> di;
    const auto falls =
        hn::RebindMask(d, hn::TestBit(hn::Iota(di, 0), hn::Set(di, static_cast<Index<T>>(kBit))));
    Unroll<kCount + kBit>([&](auto step) HWY_ATTR {
      constexpr size_t y = kCount + kBit - 1 - step;
      if constexpr (y >= kBit && y < kCount) {
        x[y] = hn::IfThenElse(falls, x[y - kBit], x[y]);
      } else if constexpr (y >= kBit && y - kBit < kCount) {
        x[y] = hn::IfThenElseZero(falls, x[y - kBit]);
      } else if constexpr (y < kCount) {
        x[y] = hn::IfThenZeroElse(falls, x[y]);
      } else {
        x[y] = hn::Zero(d);
      }
    });
    FallByLane<kBit / 2, kCount + kBit, T>(x);
  }
}

// G[strip[y + l], l] += x[y], lane l, for y < kRows: the transpose of ReadDiagonals, with the same
// arguments. The first kRows of x are given.
template <size_t kRows, class T>
HWY_INLINE void AddDiagonals(T* g, const Index<T>* strip, Vec<T>* x) {
  const hn::ScalableTag<T> d;
  FallByLane<kLanes<T> / 2, kRows, T>(x);
  Unroll<kLanes<T> + kRows - 1>([&](auto y) HWY_ATTR {
    T* to = g + static_cast<size_t>(strip[y]) * kPanel<T>;
    hn::Store(hn::Add(hn::Load(d, to), x[y]), d, to);
  });
}

// W[row] += sum of p over the keys of `panels` panels whose offset has that row.
template <class T>
HWY_INLINE void UnshearRow(const T* p, const Index<T>* strip, size_t panels, bool unit_steps,
                           T* w) {
  const hn::ScalableTag<T> d;
  constexpr size_t kP = kPanel<T>;
  constexpr size_t kN = kLanes<T>;
  Vec<T> run = hn::Zero(d);  // sum over neighbouring panels that share one table row
  Index<T> run_row = strip[0];
  const auto flush = [&]() HWY_ATTR {
    w[run_row] += hn::GetLane(hn::SumOfLanes(d, run));
    run = hn::Zero(d);
  };
  for (size_t panel = 0; panel < panels; ++panel, strip += kP, p += kP) {
    const Slope slope = SlopeOf<T>(strip, 0, kP - 1, unit_steps);
    if (slope == Slope::constant) {
      if (strip[0] != run_row) flush();
      run_row = strip[0];
      run = hn::Add(run, hn::Add(hn::LoadU(d, p), hn::LoadU(d, p + kN)));
    } else if (slope == Slope::linear) {
      T* to = w + strip[0];
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::LoadU(d, p)), d, to);
      hn::StoreU(hn::Add(hn::LoadU(d, to + kN), hn::LoadU(d, p + kN)), d, to + kN);
    } else {
      for (size_t j = 0; j < kP; ++j) w[strip[j]] += p[j];
    }
  }
  flush();
}

#if HWY_TARGET != HWY_SCALAR

// W[r, :] of kSquare neighbouring rows at once, where the strip rises by at most one per offset.
// Rows are read one key further each, so that a column has one offset: squares are transposed,
// columns are added to the table row of their offset, and squares of table rows transposed back.
//   p (kSquare, ldp);  strip: at the first row's first offset, later rows begin one lower each;
//   w (kSquare, ldw): at table row strip[1 - kSquare], written as far as strip[keys - 1] and, to
//   fill a square, up to kSquare - 1 further;  sums (those table rows, kSquare): scratch
template <class T>
HWY_INLINE void UnshearSquare(const T* p, size_t ldp, const Index<T>* strip, size_t keys, T* sums,
                              T* w, size_t ldw) {
  const SquareTag<T> d;
  constexpr size_t kS = kSquare<T>;
  const Index<T> lo = strip[1 - static_cast<ptrdiff_t>(kS)];
  const size_t rows = static_cast<size_t>(strip[keys - 1] - lo) + 1;
  std::fill_n(sums, (rows + kS - 1) / kS * kS * kS, T(0));
  const auto sums_at = [&](ptrdiff_t x) { return sums + static_cast<size_t>(strip[x] - lo) * kS; };
  const size_t skewed = (keys - (kS - 1)) / kS * kS;  // offsets that all rows have, in squares
  for (size_t r = 0; r < kS; ++r) {
    const auto add = [&](size_t j) {
      sums_at(static_cast<ptrdiff_t>(j) - static_cast<ptrdiff_t>(r))[r] += p[r * ldp + j];
    };
    for (size_t j = 0; j < r; ++j) add(j);
    for (size_t j = skewed + r; j < keys; ++j) add(j);
  }
  hn::Vec<SquareTag<T>> x[kS];
  const auto add_to = [&](T* to, hn::Vec<SquareTag<T>> y)
                          HWY_ATTR { hn::Store(hn::Add(hn::Load(d, to), y), d, to); };
  for (size_t at = 0; at < skewed; at += kS) {
    Unroll<kS>([&](auto r) HWY_ATTR { x[r] = hn::LoadU(d, p + r * ldp + r + at); });
    Transpose(x);
    if (strip[at] == strip[at + kS - 1]) {
      Unroll<kS - 1>([&](auto c) HWY_ATTR { x[0] = hn::Add(x[0], x[c + 1]); });
      add_to(sums_at(static_cast<ptrdiff_t>(at)), x[0]);
    } else {
      Unroll<kS>([&](auto c) HWY_ATTR { add_to(sums_at(static_cast<ptrdiff_t>(at + c)), x[c]); });
    }
  }
  for (size_t row = 0; row < rows; row += kS) {
    Unroll<kS>([&](auto c) HWY_ATTR { x[c] = hn::Load(d, sums + (row + c) * kS); });
    Transpose(x);
    Unroll<kS>([&](auto r) HWY_ATTR { hn::StoreU(x[r], d, w + r * ldw + row); });
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#endif  // LOCANT_KERNELS_SHEAR_INL_H_
