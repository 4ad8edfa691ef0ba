// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_UNIQUE_HPP
#define WEIR_UNIQUE_HPP

#include <cstdint>
#include <string_view>

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

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(unique_strategy o) noexcept {
  switch (o) {
    case unique_strategy::none: return "none";
    case unique_strategy::until_executed: return "until_executed";
    case unique_strategy::until_executing: return "until_executing";
    case unique_strategy::while_executing: return "while_executing";
    case unique_strategy::until_and_while_executing: return "until_and_while_executing";
    case unique_strategy::until_expired: return "until_expired";
  }
  return "?";
}

/// The rule for a newcomer whose unique key is taken.
enum class conflict_policy : std::uint8_t {
  reject,   ///< it is an error: `errc::unique_conflict`
  discard,  ///< it is a value: `enqueue_outcome::duplicate`
  log,      ///< as `discard`, and an event for the observer
  replace,  ///< a waiting job ends as cancelled and the newcomer takes its place; a running one is
            ///< a conflict
  reschedule,  ///< a waiting job keeps its payload and takes the newcomer's time and priority; a
               ///< running one is a conflict
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(conflict_policy o) noexcept {
  switch (o) {
    case conflict_policy::reject: return "reject";
    case conflict_policy::discard: return "discard";
    case conflict_policy::log: return "log";
    case conflict_policy::replace: return "replace";
    case conflict_policy::reschedule: return "reschedule";
  }
  return "?";
}

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
