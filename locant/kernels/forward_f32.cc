#include "locant/kernels/forward.h"
#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/forward_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

int64_t RunForwardF32(const ForwardCall& call, const ForwardItem& item) {
  return ForwardKernel<float>(call, item).run();
}

void PackTableF32(const ForwardCall& call, size_t projection, int64_t head) {
  PackTable<float>(call.terms->projections[projection], head, call.tables[projection]);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RunForwardF32);
HWY_EXPORT(PackTableF32);

int64_t run_forward_f32(const ForwardCall& call, const ForwardItem& item) {
  return LOCANT_DISPATCH_TO(RunForwardF32, call.isa)(call, item);
}

void pack_table_f32(const ForwardCall& call, size_t projection, int64_t head) {
  LOCANT_DISPATCH_TO(PackTableF32, call.isa)(call, projection, head);
}

}  // namespace locant::inline v0
#endif
