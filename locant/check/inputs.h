// The data of one conformance case: buffers, views in the case's layout, an encoding with weights.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "locant/check/check.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {

// What numbers stored as Real are computed in.
template <class Real>
using ComputedIn = std::conditional_t<std::is_same_v<Real, double>, double, float>;

// A number as the type can hold it.
double rounded(double value, DType dtype);

// The elements, row-major.
std::vector<double> dense(const ConstView& x);

// Numbers are those of check.dtype, stored as Real: two objects of one case hold the same numbers.
// Views and options point into the object itself.
template <class Real>
class CheckInputs {
 public:
  explicit CheckInputs(const CheckCase& check);
  CheckInputs(const CheckInputs&) = delete;
  CheckInputs& operator=(const CheckInputs&) = delete;

  View q, k, v;           // (B, H, Lq, d), (B, Hkv, Lk, d), (B, Hkv, Lk, d)
  View out;               // (B, H, Lq, d), strided like q; filled with garbage
  AttendOptions options;  // without lse
  std::unique_ptr<Encoding> encoding;
  std::vector<std::pair<std::string, View>> parameters;  // the encoding's: what it views

 private:
  using Wide = ComputedIn<Real>;

  std::vector<Real>& buffer(int64_t size) { return buffers_.emplace_back(size); }
  std::vector<Wide>& wide_buffer(int64_t size) { return wide_buffers_.emplace_back(size); }
  void make_tensors(const CheckCase& check, int64_t batch);
  void make_batch(const CheckCase& check, int64_t batch);
  void make_out(const CheckCase& check, int64_t batch);
  void make_visible(const CheckCase& check);
  void make_mask(const CheckCase& check, int64_t batch);
  void make_segments(const CheckCase& check, int64_t batch);
  void make_encoding_with_weights(const CheckCase& check);
  void poison();

  std::deque<std::vector<Real>> buffers_;  // a deque: growth moves no buffer
  std::deque<std::vector<Wide>> wide_buffers_;
  std::unique_ptr<bool[]> boolean_mask_;
  std::vector<int64_t> lengths_, k_lengths_, q_segments_, k_segments_;
  std::vector<Sequence> sequences_;
};

}  // namespace locant::inline v0
