// What an action complains about: the text of its std::invalid_argument, or "no error".
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/rejections.h"

namespace locant {

inline std::string message_of(const std::function<void()>& action) {
  RejectionWatch watch;
  try {
    action();
  } catch (const std::invalid_argument& error) {
    watch.rejected(error.what());
    return error.what();
  }
  return "no error";
}

}  // namespace locant
