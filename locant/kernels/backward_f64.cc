#include "locant/kernels/backward.h"
#include "locant/kernels/isa_dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "locant/kernels/backward_f64.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "locant/kernels/backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locant::inline v0 {
namespace HWY_NAMESPACE {

int64_t RunBackwardF64(const BackwardCall& call, const BackwardItem& item) {
  return BackwardKernel<double>(call, item).run();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace locant::inline v0
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace locant::inline v0 {

HWY_EXPORT(RunBackwardF64);

int64_t run_backward_f64(const BackwardCall& call, const BackwardItem& item) {
  return LOCANT_DISPATCH_TO(RunBackwardF64, call.isa)(call, item);
}

}  // namespace locant::inline v0
#endif
