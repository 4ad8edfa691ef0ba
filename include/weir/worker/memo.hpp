// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_MEMO_HPP
#define WEIR_WORKER_MEMO_HPP

#include <cstdint>
#include <string>

namespace weir::detail {

/// The memo of a job whose rate refused it, and whose tokens are reserved for its next claim: that
/// of this attempt, after so many snoozes. A replay counts both anew, and so pays again.
[[nodiscard]] inline std::string reservation_memo(std::uint32_t attempt, std::uint32_t snoozes) {
  return "rate paid for attempt " + std::to_string(attempt) + ", snooze " + std::to_string(snoozes);
}

}  // namespace weir::detail

#endif
