// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_LATE_RENEWALS_HPP
#define WEIR_DETAIL_LATE_RENEWALS_HPP

#include "weir/log.hpp"
#include "weir/time.hpp"

#include <chrono>
#include <string>

namespace weir::detail {

/// Tells the log of a renewal that comes so late that leases may be lost: its thread was blocked,
/// or the host stood still (F85).
///
/// @param who  renews
/// @param late after the time at which it wanted to
inline void log_late_renewals(char const* who, duration late, duration lease) noexcept {
  constexpr int part = 12;
  if (late <= lease / part || !logs(log::level::warning)) return;
  try {
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(late).count();
    tell_log(log::level::warning, log::topic::starvation,
             std::string{who} + ": renewals are " + std::to_string(ms) +
                 " ms late: is their thread blocked by a handler? Give them an executor of their "
                 "own (bookkeeping_on, renew_on)");
  } catch (...) {  // out of memory
  }
}

}  // namespace weir::detail

#endif
