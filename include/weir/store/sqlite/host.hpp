// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_HOST_HPP
#define WEIR_STORE_SQLITE_HOST_HPP

#include "weir/clock/system.hpp"
#include "weir/time.hpp"

#include <concepts>
#include <functional>
#include <string>

namespace weir::detail {

/// What a file's time needs to know of the host, whatever the clock is.
struct sqlite_host {
  std::function<steady_time()> passing;  ///< the boot clock
  std::function<time_point()> date;  ///< asked when the file's time begins, and at no other time
  std::string boot_id;               ///< of the current boot; empty: unknown

  /// The host as a clock policy sees it.
  template <class Clock>
  [[nodiscard]] static sqlite_host of(Clock const& clock) {
    sqlite_host out;
    out.passing = [clock] { return clock.steady_now(); };
    out.date = [clock] { return clock.system_now(); };
    if constexpr (requires {
                    { clock.boot_id() } -> std::convertible_to<std::string>;
                  }) {
      out.boot_id = clock.boot_id();
    } else {
      out.boot_id = system_clock::boot_id();
    }
    return out;
  }
};

}  // namespace weir::detail

#endif
