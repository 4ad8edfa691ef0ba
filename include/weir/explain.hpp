// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXPLAIN_HPP
#define WEIR_EXPLAIN_HPP

#include "weir/console/any_store.hpp"
#include "weir/console/explain.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_explanation.hpp"
#include "weir/job_queue.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace weir {

namespace detail {

/// @return empty: there is no record of it
inline boost::asio::awaitable<result<std::optional<job_explanation>>> explain_job(
    console_queue queue, std::string name, job_id id) {
  auto const [ec, found] = co_await queue.async_find(name, id, as_value);
  if (ec) co_return ec;
  if (!found) co_return std::optional<job_explanation>{};
  auto const [failed, stats] = co_await queue.async_stats(name, as_value);
  if (failed) co_return failed;
  auto out = co_await explain(queue, name, *found, *found, stats);
  out.record = *found;
  co_return std::optional{std::move(out)};
}

}  // namespace detail

/// Says why a job does not run, and until when: that it is not due, or was put off; that its queue
/// is paused or held back; who has its unique key, or the permits of its concurrency limit; when
/// its rate limit has enough tokens; that no worker knows its kind, or all are busy; and what only
/// its workers know. It changes nothing.
///
///     auto const why = co_await weir::async_explain(queue, "mail", id);
///     if (!why) co_return;  // there is no record of it
///     for (auto const& [code, text] : why->because) std::cout << text << '\n';
///
/// It asks the store two to seven questions, one more for each shard, and up to nine more where
/// the jobs that are leased are on many pages. What it says may have changed meanwhile.
///
/// @param queue of a store of any kind
/// @param name  the queue's, 1…`limits::key_size` bytes
/// @param id    of the job
/// @param token completes with `void(error_code, std::optional<job_explanation>)`
/// @return the reasons; empty: there is no record of such a job
/// Errors: those of `job_queue::async_find`. Cancelling it leaves nothing behind.
///
/// Executor: the associated one of the handler, or else the store's. Thread-safety: as the queue's.
template <class Queue, class Token = typename Queue::default_token>
WEIR_OPERATION auto async_explain(Queue const& queue, std::string name, job_id id,
                                  Token&& token = Token{}) {
  using answer = std::optional<job_explanation>;
  auto initiate = [id](boost::asio::any_completion_handler<void(error_code, answer)> handler,
                       detail::console_queue const& on, std::string of) {
    detail::spawn<answer>(on.get_executor(), detail::explain_job(on, std::move(of), id),
                          std::move(handler));
  };
  return boost::asio::async_initiate<Token, void(error_code, answer)>(
      detail::bound_initiation{queue.get_executor(), initiate}, token,
      detail::console_queue{detail::console_store{queue.get_store()}}, std::move(name));
}

}  // namespace weir

#endif
