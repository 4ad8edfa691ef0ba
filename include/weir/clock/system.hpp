// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CLOCK_SYSTEM_HPP
#define WEIR_CLOCK_SYSTEM_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <time.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace weir {

namespace detail {

/// A wait by the clock `Source` (static `steady_now()`, `longest_sleep`) that Asio's timer, another
/// clock, carries out. One body for all handlers, because it is erased.
template <class Source>
class timer_wait {
 public:
  using handler_type = boost::asio::any_completion_handler<void(error_code)>;
  using executor_type =
      boost::asio::associated_executor_t<handler_type, boost::asio::any_io_executor>;
  using allocator_type = boost::asio::associated_allocator_t<handler_type>;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  static void start(handler_type handler, boost::asio::any_io_executor const& executor,
                    steady_time t) {
    if (Source::steady_now() >= t) {
      // A timer that has expired costs a thousand times as much as a post.
      post_completion(executor, std::move(handler), error_code{});
    } else {
      timer_wait wait{executor, t, std::move(handler)};
      std::move(wait).sleep_on();
    }
  }

  timer_wait(boost::asio::any_io_executor const& executor, steady_time t, handler_type&& handler)
      : handler_{std::move(handler)},
        sleep_{std::make_unique<sleep>(executor, t, handler_)} {}

  [[nodiscard]] executor_type get_executor() const noexcept {
    return boost::asio::get_associated_executor(handler_, sleep_->timer.get_executor());
  }
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return boost::asio::get_associated_allocator(handler_);
  }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
    return sleep_->cancellation.slot();
  }

  void operator()(error_code ec) {
    if (!ec && Source::steady_now() < sleep_->until) {
      // A cancellation that came while this was on its way from the timer found nothing to cancel.
      if (sleep_->cancellation.cancelled() == boost::asio::cancellation_type::none) {
        return std::move(*this).sleep_on();
      }
      ec = boost::asio::error::operation_aborted;
    }
    // What a timer leaves in the slot refers to the timer: a late cancellation is to find nothing.
    boost::asio::get_associated_cancellation_slot(handler_).clear();
    sleep_.reset();
    std::move(handler_)(ec);
  }

 private:
  struct sleep {
    sleep(boost::asio::any_io_executor const& executor, steady_time t, handler_type const& handler)
        : timer{executor},
          until{t},
          cancellation{boost::asio::get_associated_cancellation_slot(handler),
                       boost::asio::enable_total_cancellation{}} {}

    boost::asio::steady_timer timer;
    steady_time until;
    boost::asio::cancellation_state cancellation;
  };

  void sleep_on() && {
    auto& timer = sleep_->timer;
    timer.expires_after(
        std::min(saturating_sub(sleep_->until, Source::steady_now()), Source::longest_sleep));
    timer.async_wait(std::move(*this));
  }

  handler_type handler_;
  std::unique_ptr<sleep> sleep_;  // a timer cannot be moved while it waits
};

/// Starts such a wait.
template <class Source>
class timer_initiation {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit timer_initiation(executor_type executor) : executor_{std::move(executor)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  template <class Handler>
  void operator()(Handler&& handler, steady_time t) const {
    timer_wait<Source>::start(std::forward<Handler>(handler), executor_, t);
  }

 private:
  executor_type executor_;
};

/// What it returns is spelled out, so that asking whether there is such a wait, as concepts do,
/// does not compile one.
template <class Source, class Token>
auto async_timer_wait(boost::asio::any_io_executor executor, steady_time t, Token&& token)
    -> decltype(boost::asio::async_initiate<Token, void(error_code)>(
        std::declval<timer_initiation<Source>>(), token, t)) {
  return boost::asio::async_initiate<Token, void(error_code)>(
      timer_initiation<Source>{std::move(executor)}, token, t);
}

}  // namespace detail

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

#endif
