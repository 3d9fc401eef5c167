#include "locant/attention/checks.h"

#include <algorithm>
#include <ostream>

#include "locant/core/overlap.h"

namespace locant::inline v0 {
namespace {

void check_tensor(const char* scope, const char* name, const ConstView& tensor, const char* axes) {
  require(tensor.rank == 4, scope, name, " must have 4 axes ", axes, ", got shape ",
          shape_text(tensor));
  for (const int64_t extent : tensor.shape)
    require(extent >= 0, scope, name, " has a negative extent: ", shape_text(tensor));
  require(tensor.data != nullptr || tensor.size() == 0, scope, name, " must not be null");
}

// A tensor with its name, for messages: "k (2, 4, 10, 32)".
struct Named {
  const char* name;
  const ConstView& tensor;
};

std::ostream& operator<<(std::ostream& text, const Named& named) {
  return text << named.name << ' ' << shape_text(named.tensor);
}

void check_equal(const char* scope, const Named& a, const Named& b, int axis, const char* what) {
  const int64_t x = a.tensor.shape[axis], y = b.tensor.shape[axis];
  require(x == y, scope, a, " and ", b, " must have the same ", what, ", got ", x, " and ", y);
}

}  // namespace

void check_shapes(const char* scope, const ConstView& q, const ConstView& k, const ConstView& v) {
  check_tensor(scope, "q", q, "(B, H, Lq, d)");
  check_tensor(scope, "k", k, "(B, Hkv, Lk, d)");
  check_tensor(scope, "v", v, "(B, Hkv, Lk, dv)");
  check_equal(scope, {"k", k}, {"q", q}, 0, "batch size");
  check_equal(scope, {"v", v}, {"q", q}, 0, "batch size");
  check_equal(scope, {"k", k}, {"q", q}, 3, "head_dim");
  check_equal(scope, {"v", v}, {"k", k}, 1, "heads");
  check_equal(scope, {"v", v}, {"k", k}, 2, "length");
  const int64_t heads = q.shape[1], kv_heads = k.shape[1];
  require(heads == 0 || (kv_heads > 0 && heads % kv_heads == 0), scope, Named{"q", q}, " and ",
          Named{"k", k}, ": the heads of q must be a multiple of those of k, got ", heads, " and ",
          kv_heads);
}

void check_types(const char* scope, const ConstView& q, const ConstView& k, const ConstView& v) {
  require(is_floating(q.dtype), scope, Named{"q", q}, " is ", name_of(q.dtype),
          " but must be f32, f64, f16 or bf16");
  for (const Named& other : {Named{"k", k}, Named{"v", v}})
    require(other.tensor.dtype == q.dtype, scope, other, " is ", name_of(other.tensor.dtype),
            " but ", Named{"q", q}, " is ", name_of(q.dtype));
}

void check_operand(const char* scope, const char* name, const ConstView& operand,
                   std::span<const int64_t> shape, DType q, Precision precision) {
  require(std::equal(shape.begin(), shape.end(), operand.shape.begin(),
                     operand.shape.begin() + operand.rank),
          scope, name, " has shape ", shape_text(operand), " but must be ", shape_text(shape));
  require(operand.data != nullptr || operand.size() == 0, scope, name, " must not be null");
  const DType computed = is_half(q) ? DType::f32 : q;
  if (precision == Precision::computed) {
    require(operand.dtype == computed, scope, name, " is ", name_of(operand.dtype), " but must be ",
            name_of(computed), " as q is ", name_of(q));
  } else {
    require(operand.dtype == q || operand.dtype == computed, scope, name, " is ",
            name_of(operand.dtype), " but q is ", name_of(q),
            is_half(q) ? ": it must be that or f32" : "");
  }
}

void check_result(const char* scope, const char* name, const View& result,
                  std::span<const int64_t> shape, DType q, Precision precision) {
  check_operand(scope, name, result, shape, q, precision);
  for (int axis = 0; axis < result.rank; ++axis)
    require(result.strides[axis] != 0 || result.shape[axis] <= 1 || result.size() == 0, scope, name,
            " has stride 0 on axis ", axis, " of extent ", result.shape[axis]);
}

void check_apart(const char* scope, const char* name, const View& result, const char* other_name,
                 const ConstView& other) {
  require(!may_overlap(result, other), scope, name, " overlaps ", other_name, " in memory");
}

}  // namespace locant::inline v0
