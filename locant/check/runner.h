// What the runners of attention's and of gradients' cases share.
#pragma once

#include <string>
#include <vector>

#include "locant/check/check.h"
#include "locant/kernels/isa.h"

namespace locant::inline v0 {

// An instruction set for the time of a scope.
class IsaScope {
 public:
  explicit IsaScope(const std::string& name) : before_(isa()) { set_isa(name); }
  ~IsaScope() { set_isa(before_); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  std::string before_;
};

// x, moved towards `wanted` by as much as rounding to a 16-bit dtype may have moved it away.
std::vector<double> before_rounding(std::vector<double> x, const std::vector<double>& wanted,
                                    DType dtype);

// Adds what is wrong to result.failure and the error to result.ratio.
void judge(const std::string& what, double error, double tolerance, CheckResult& result);

// Name, number and command of a result that has its ISA and failures; flags are as on the command
// line: "--gradients ".
void finish(const CheckCase& check, const std::string& flags, CheckResult& result);

}  // namespace locant::inline v0
