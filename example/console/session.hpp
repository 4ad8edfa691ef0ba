// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_SESSION_HPP
#define WEIR_EXAMPLE_CONSOLE_SESSION_HPP

#include "any_store.hpp"
#include "options.hpp"
#include "output.hpp"
#include "weir/console/asking.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_queue.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <string>
#include <string_view>

namespace console {

using weir::detail::as_value;
using weir::detail::in_flight;
using weir::detail::together;

/// The state that all commands share.
struct session {
  session(asio::io_context& io, any_store on, options const& how)
      : store{std::move(on)},
        queue{store},
        o{how},
        out{how.json},
        pause{io} {}

  any_store store;
  weir::job_queue<any_store> queue;
  options const& o;
  output out;
  asio::steady_timer pause;     ///< what waits; a signal cancels it
  bool ends_by_itself = false;  ///< on a signal: it looks at `stopping` between its steps
  bool stopping = false;

  /// Says what went wrong, on one line of standard error, and gives the exit code.
  int fail(weir::error_code const& ec) const;
  /// Says that something is not there, or was refused.
  int refuse(std::string const& why) const;
};

using answer = asio::awaitable<int>;  ///< an exit code

/// Says it on standard error: made printable, and without passwords.
void say(std::string const& text);

/// The jobs' ids, as they were given. Throws `failure`.
[[nodiscard]] weir::job_id to_id(std::string const& text);

// The commands, each in the file of its kind.
answer list_queues(session& s);
answer list_jobs(session& s);
answer list_dead(session& s);
answer show_job(session& s);
answer explain_job(session& s);
answer show_limits(session& s);
answer show_locks(session& s);
answer show_buckets(session& s);
answer list_schedules(session& s);
answer list_workers(session& s);
answer act_on_schedules(session& s);
answer hold_queues(session& s);
answer cancel_jobs(session& s);
answer replay_jobs(session& s);
answer purge_jobs(session& s);
answer serve_pages(session& s);
answer tail_queues(session& s);

}  // namespace console

#endif
