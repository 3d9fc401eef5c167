// How much memory a call takes beyond what is already there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace locant::cli {

// Peak resident memory during body() minus resident memory before it, in bytes. The process's peak
// counter is reset first: where the system does not offer that, body() runs and the answer is
// empty.
std::optional<int64_t> extra_peak_memory(const std::function<void()>& body);

}  // namespace locant::cli
