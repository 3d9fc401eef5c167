// What refusing costs: the time of each refusal that a test asks for, and the largest piece of
// memory that was asked for during it. Written to the file that LOCANT_REJECTIONS names, a line
// each:
//   BadConfigs.Texts <tab> milliseconds <tab> bytes
// tests/bad_inputs.py reads it.
#pragma once

namespace locant {

// From its beginning to rejected(), on this thread.
class RejectionWatch {
 public:
  RejectionWatch();
  ~RejectionWatch();
  RejectionWatch(const RejectionWatch&) = delete;
  RejectionWatch& operator=(const RejectionWatch&) = delete;

  void rejected();  // now: what was watched ended in an error

 private:
  long long began_;
};

}  // namespace locant
