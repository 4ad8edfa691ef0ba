// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_SYSTEM_HPP
#define WEIR_CLOCK_SYSTEM_HPP

#include "weir/clock/timed_by.hpp"
#include "weir/concept.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>

#include <time.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

namespace weir {

/// The host's clocks. Stateless: all instances are the same clock. May be used by any number of
/// threads.
class system_clock {
 public:
  /// The timer below stands still while the host is suspended, and `steady_now` does not. So no
  /// wait trusts the timer for longer than this, and a wait whose time comes in suspend completes
  /// at most this long after the host resumes.
  static constexpr duration longest_sleep = std::chrono::seconds{5};

  /// The time since the host started, suspension included where the host can tell (CLOCK_BOOTTIME).
  [[nodiscard]] static steady_time steady_now() noexcept {
#if defined(CLOCK_BOOTTIME)
    ::timespec t;
    if (::clock_gettime(CLOCK_BOOTTIME, &t) == 0) [[likely]] {
      return steady_time{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
    }
#endif
    return steady_time{std::chrono::steady_clock::now().time_since_epoch()};
  }

  /// The date.
  [[nodiscard]] static time_point system_now() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  }

  /// The id of the host's current boot, the same in all its processes and another after each start:
  /// Linux's boot_id, macOS's bootsessionuuid. Empty where the host has none to read. A container
  /// has its host's, but for those that are made one of their own (systemd-nspawn, LXC).
  [[nodiscard]] static std::string const& boot_id() {
    static std::string const id = read_boot_id();
    return id;
  }

  /// Waits until `steady_now() >= t`.
  ///
  /// @param executor of the timer, and of a handler that has none
  /// @param t        any time: the past completes at once, `steady_time::max()` when cancelled
  /// @param token    completes with `void(error_code)`
  ///
  /// Errors: `operation_aborted` when cancelled, by any kind of cancellation, which leaves nothing
  /// behind. The handler is called by its associated executor, never by this function.
  template <class Token = boost::asio::deferred_t>
  auto async_wait_until(boost::asio::any_io_executor executor, steady_time t,
                        Token&& token = {}) const
      -> decltype(detail::async_timer_wait<system_clock>(std::move(executor), t,
                                                         std::forward<Token>(token))) {
    return detail::async_timer_wait<system_clock>(std::move(executor), t,
                                                  std::forward<Token>(token));
  }

 private:
  static std::string read_boot_id() {
    char id[64] = {};
#if defined(__APPLE__)
    std::size_t size = sizeof(id) - 1;
    if (::sysctlbyname("kern.bootsessionuuid", id, &size, nullptr, 0) != 0) id[0] = 0;
#else
    if (auto* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
      if (std::fgets(id, sizeof(id), file) == nullptr) id[0] = 0;
      std::fclose(file);
    }
#endif
    std::string out{id};
    while (!out.empty() && out.back() <= ' ') out.pop_back();
    return out;
  }
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/clock/timer_wait.hpp"
#endif

#endif
