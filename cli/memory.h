// How much memory a call takes beyond what is already there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace locant::cli {

// Peak resident memory during body() minus resident memory after prepare(), in bytes. Both run in a
// forked child, so that nothing that earlier calls kept hides what body() needs. Empty if the
// system does not tell, or if body() throws.
std::optional<int64_t> extra_peak_memory(const std::function<void()>& prepare,
                                         const std::function<void()>& body);

}  // namespace locant::cli
