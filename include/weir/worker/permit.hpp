// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_PERMIT_HPP
#define WEIR_WORKER_PERMIT_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

/// The answer to a worker that asks for a permit.
struct permit_answer {
  error_code error{};
  bool granted = false;
  duration retry_after{};   ///< refused: when asking again may be worth it
  std::uint64_t fence = 0;  ///< granted: the permit's number
  steady_time deadline{};   ///< granted: from here on it may be over
  bool in_doubt = false;    ///< failed: a request may have been granted all the same
};

/// Asks for a permit that lasts as long as a job's lease, and is renewed with it.
///
/// @param patience how long a refused holder keeps its place in the line; 0: it takes none
/// @param until how long a store that fails is asked again
inline boost::asio::awaitable<permit_answer> ask_for_permit(worker_core& core, std::string key,
                                                            std::string holder, std::uint32_t limit,
                                                            duration patience, steady_time until) {
  auto const lease = core.options.lease;
  question<command::acquire_permit> acquire{
      {.key = key, .holder = holder, .limit = limit, .ttl = lease, .patience = patience}};
  acquire.needs_room = true;
  co_await core.ask(acquire, until);
  if (acquire.error) {
    co_return permit_answer{.error = acquire.error, .in_doubt = acquire.in_doubt};
  }
  auto const& grant = *acquire.answer;
  if (!grant.granted) co_return permit_answer{{}, false, grant.retry_after};
  auto asked_at = acquire.asked_at;
  auto expires_in = grant.expires_in;
  if (expires_in < lease - lease / 3) {
    // A request before this one took it, and its answer was lost: not much of it may be left, and
    // the renewer comes at the job's times.
    question<command::renew_permit> keep{
        {.key = key, .holder = holder, .fence = grant.fence, .ttl = lease}};
    co_await core.ask(keep, until);
    if (keep.error == errc::lease_lost) co_return permit_answer{};
    if (keep.error) co_return permit_answer{keep.error, false, {}, grant.fence};
    asked_at = keep.asked_at;
    expires_in = keep.answer->expires_in;
  }
  co_return permit_answer{
      {}, true, {}, grant.fence, worker_core::lease_deadline(asked_at, expires_in)};
}

/// Ends a permit, or with the fence 0 whatever its holder has. Its TTL does, where this cannot.
inline boost::asio::awaitable<void> give_back_permit(worker_core& core, active_permit permit) {
  question<command::release_permit> release{
      {.key = permit.key, .holder = permit.holder, .fence = permit.fence}};
  co_await core.ask(release, saturating_add(core.clock.steady_now(), core.options.lease));
  if (release.error) core.tell_failure(release.error);
}

}  // namespace weir::detail

#endif
