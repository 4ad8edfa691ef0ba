// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_UNIQUE_HPP
#define WEIR_UNIQUE_HPP

#include <cstdint>

namespace weir {

/// How long a job's unique key is taken. The key belongs to {queue, key}.
enum class unique_strategy : std::uint8_t {
  none,                       ///< the job has no unique key
  until_executed,             ///< from enqueue to the terminal state: at most one such job exists
  until_executing,            ///< from enqueue until its handler starts: at most one such job waits
  while_executing,            ///< while its handler runs: many may wait, one runs
  until_and_while_executing,  ///< both of the last two
  until_expired,              ///< from enqueue for a fixed time, however the job ends
};

/// What a newcomer does whose unique key is taken.
enum class conflict_policy : std::uint8_t {
  reject,   ///< it is an error: `errc::unique_conflict`
  discard,  ///< it is a value: `enqueue_outcome::duplicate`
  log,      ///< as `discard`, and an event for the observer
  replace,  ///< a waiting job ends as cancelled and the newcomer takes its place; a running one is
            ///< a conflict
  reschedule,  ///< a waiting job keeps its payload and takes the newcomer's time; a running one is
               ///< a conflict
};

/// Does the strategy hold {queue, key} from enqueue on?
[[nodiscard]] constexpr bool holds_while_waiting(unique_strategy s) noexcept {
  return s != unique_strategy::none && s != unique_strategy::while_executing;
}

/// Does the strategy let only one job of {queue, key} run?
[[nodiscard]] constexpr bool holds_while_running(unique_strategy s) noexcept {
  return s == unique_strategy::while_executing || s == unique_strategy::until_and_while_executing;
}

/// Must a worker tell the store that the handler starts (`command::start_job`)?
[[nodiscard]] constexpr bool needs_start(unique_strategy s) noexcept {
  return s == unique_strategy::until_executing || holds_while_running(s);
}

}  // namespace weir

#endif
