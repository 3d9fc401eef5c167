// What the tensors of an attention call must be, forward or backward. Errors begin with `scope`,
// the function that was called.
#pragma once

#include <span>

#include "locant/core/view.h"

namespace locant::inline v0 {

// q (B, H, Lq, d), k (B, Hkv, Lk, d), v (B, Hkv, Lk, dv): sizes that fit each other, and one type.
void check_shapes(const char* scope, const ConstView& q, const ConstView& k, const ConstView& v);
void check_types(const char* scope, const ConstView& q, const ConstView& k, const ConstView& v);

// What a tensor beside them has to be: the type of q or the one it is computed in, for lse only the
// latter.
enum class Precision : uint8_t { stored_or_computed, computed };
void check_operand(const char* scope, const char* name, const ConstView& operand,
                   std::span<const int64_t> shape, DType q, Precision precision);

// The same for one that is written: each element has its own place.
void check_result(const char* scope, const char* name, const View& result,
                  std::span<const int64_t> shape, DType q, Precision precision);

// Results are written while others are still read.
void check_apart(const char* scope, const char* name, const View& result, const char* other_name,
                 const ConstView& other);

}  // namespace locant::inline v0
