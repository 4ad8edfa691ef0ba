// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_JOB_WAIT_HPP
#define WEIR_DETAIL_JOB_WAIT_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/parking.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

using job_finder = any_store<command::find_job>;

/// The first pause between two looks at a job; each is twice as long as the one before.
inline constexpr duration first_look_apart = std::chrono::milliseconds{10};

/// Looks at a job until it has ended, or there is no record of it. Templates of nothing: whoever
/// does not wait for jobs compiles no coroutine.
template <class Finder>
boost::asio::awaitable<result<std::optional<job>>> wait_for_end(Finder store, any_clock clock,
                                                                std::string queue, job_id id,
                                                                duration poll) {
  namespace asio = boost::asio;
  co_await asio::this_coro::throw_if_cancelled(false);
  auto const name = std::make_shared<std::string const>(std::move(queue));
  command::find_job const look{.queue = *name, .id = id};
  auto pause = std::min(first_look_apart, poll);
  for (;;) {
    result<std::optional<job>> found = std::optional<job>{};
    if (store.executes_now()) {
      found = store.execute(look);
    } else {
      auto start = [&](attempt_handler<std::optional<job>> handler) {
        store.start(look, std::move(handler));
      };
      auto asking = attempt<std::optional<job>>(clock, steady_time::max(), name, std::move(start));
      found = co_await std::move(asking);
    }
    bool const again = found.has_error() ? found.error() == condition::transient
                                         : *found && !is_terminal((*found)->state);
    if (!again) co_return found;
    auto waiting = attempt_nothing(clock, saturating_add(clock.steady_now(), pause));
    if (auto const ec = co_await std::move(waiting); ec == asio::error::operation_aborted) {
      co_return error_code{ec};
    }
    pause = std::min(2 * pause, poll);
  }
}

/// Starts such a wait.
template <class Store, class Clock>
struct job_wait {
  using executor_type = boost::asio::any_io_executor;
  using handler_type = boost::asio::any_completion_handler<void(error_code, std::optional<job>)>;

  [[nodiscard]] executor_type get_executor() const { return store.get_executor(); }

  void operator()(handler_type handler, std::string queue, job_id id, duration poll) const {
    if (poll <= duration::zero() || poll > limits::span) {
      auto const refused = park<error_code, std::optional<job>>(get_executor(), std::move(handler));
      refused->resume(errc::invalid_wait, std::nullopt);
      return;
    }
    auto body =
        wait_for_end(job_finder::of(store), any_clock::of(clock), std::move(queue), id, poll);
    spawn<std::optional<job>>(get_executor(), std::move(body), std::move(handler));
  }

  Store store;
  Clock clock;
};

}  // namespace weir::detail

#endif
