// What refusing costs: the time of each refusal that a test asks for, the largest piece of memory
// that was asked for during it, and what was said. Written to the file that LOCANT_REJECTIONS
// names, a line each:
//   BadConfigs.Texts <tab> milliseconds <tab> bytes <tab> message
// tests/bad_inputs.py reads it.
#pragma once

#include <string>

namespace locant {

// From its beginning to rejected(), on this thread.
class RejectionWatch {
 public:
  RejectionWatch();
  ~RejectionWatch();
  RejectionWatch(const RejectionWatch&) = delete;
  RejectionWatch& operator=(const RejectionWatch&) = delete;

  void rejected(std::string message);  // now: what was watched ended in an error

 private:
  long long began_;
};

}  // namespace locant
