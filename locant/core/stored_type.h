// From a DType to a C++ type.
#pragma once

#include "locant/core/half.h"
#include "locant/core/view.h"

namespace locant::inline v0 {

// f(S{}) with the type S of a floating dtype's elements.
template <class F>
auto with_stored_type(DType dtype, F&& f) {
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::bf16) return f(Bfloat{});
  if (dtype == DType::f16) return f(Half{});
  return f(float{});
}

}  // namespace locant::inline v0
