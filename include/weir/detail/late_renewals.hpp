// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_LATE_RENEWALS_HPP
#define WEIR_DETAIL_LATE_RENEWALS_HPP

#include "weir/log.hpp"
#include "weir/time.hpp"

#include <chrono>
#include <string>

namespace weir::detail {

/// The words for a renewal that comes so late that leases may be lost, because its thread was
/// blocked or the host stood still (F85); empty for one that is in time, or when memory is
/// exhausted.
///
/// @param late   after the time at which it was to be sent
/// @param remedy the function by which renewals get an executor of their own
inline std::string text_of_late_renewals(duration late, duration lease,
                                         char const* remedy) noexcept {
  constexpr int part = 12;
  if (late <= lease / part) return {};
  try {
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(late).count();
    return "renewals are " + std::to_string(ms) +
           " ms late: is their thread blocked by a handler? Give them an executor of their own (" +
           remedy + ")";
  } catch (...) {
    return {};
  }
}

/// Tells the log of such a renewal.
///
/// @param who renews
inline void log_late_renewals(char const* who, duration late, duration lease,
                              char const* remedy) noexcept {
  if (!logs(log::level::warning)) return;
  try {
    auto const text = text_of_late_renewals(late, lease, remedy);
    if (text.empty()) return;
    tell_log(log::level::warning, log::topic::starvation, std::string{who} + ": " + text);
  } catch (...) {  // out of memory
  }
}

}  // namespace weir::detail

#endif
