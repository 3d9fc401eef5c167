// The gradients of attend(): of q, k, v and of every parameter of the encoding.
#pragma once

#include "locant/core/api.h"
#include "locant/core/view.h"
#include "locant/encodings/encoding.h"
#include "locant/layers/attend.h"

namespace locant::inline v0 {

// What attend() gave.   out (B, H, Lq, dv)   lse (B, H, Lq)
struct AttendResult {
  ConstView out, lse;
};

// For L with dL/d(out) = dout: writes dq, dk, dv and returns the gradients of the parameters, in
// their shapes, f64 where the parameter is f64, else f32.
//   dout (B, H, Lq, dv)   dq (B, H, Lq, d)   dk (B, Hkv, Lk, d)   dv (B, Hkv, Lk, dv), any strides
// q, k, v, the encoding and the options are those of the forward call, dropout and its seed too;
// options.lse is not used. out, dout, dq, dk and dv have the type of q, or f32 if that is 16-bit.
// Probabilities are computed again from lse: memory is linear in the lengths. The same bits for any
// number of threads. Rows of padding get zeros. What attend() computes on the materialised path
// (position ids with terms that depend on them), and sequences that share keys, are refused.
LOCANT_API ParameterGradients attend_backward(const ConstView& q, const ConstView& k,
                                              const ConstView& v, const Encoding& encoding,
                                              const AttendOptions& options,
                                              const AttendResult& forward, const ConstView& dout,
                                              const View& dq, const View& dk, const View& dv);

}  // namespace locant::inline v0
