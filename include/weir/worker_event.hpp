// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_EVENT_HPP
#define WEIR_WORKER_EVENT_HPP

#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir {

/// The kinds of events of a worker. Without another subject, a line is about a job.
enum class worker_event_kind : std::uint8_t {
  started,         ///< its handler starts
  completed,       ///< its result is stored
  result_dropped,  ///< its handler has succeeded, and its result cannot be stored, for `reason`:
                   ///< the job is completed without it
  retried,         ///< the attempt failed; the job vests again after `delay`
  snoozed,  ///< refused by a limit, or by its handler, or a store that failed could not say whether
            ///< a limit refuses it; it vests again after `delay`, or is brought forward when its
            ///< concurrency limit has a permit; the attempt was given back
  returned,       ///< given back unstarted, or cut short, because the worker stops, the queue was
                  ///< snoozed, or the job's permit was lost
  dead_lettered,  ///< ended for good, with `reason`
  damaged,        ///< `count` records of `queue` could not be read and are dead letters now: see
                  ///< `damaged_record`
  lease_lost,     ///< the lease ended before the handler did, or before its outcome was stored:
                  ///< another will run it, unless it was cancelled
  queue_snoozed,  ///< a limit that the whole queue shares refused; the queue is held back for
                  ///< `delay`
  starved,  ///< the leases of `count` jobs should have been renewed `delay` ago, more than half a
            ///< lease: the thread of the bookkeeping is blocked, and the jobs may run twice; see
            ///< `worker::bookkeeping_on`
  store_failed,     ///< a command failed with `error`; it is tried again where that is safe
  store_recovered,  ///< a command succeeded again, `delay` after the first of those that found the
                    ///< store away
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(worker_event_kind k) noexcept {
  switch (k) {
    case worker_event_kind::started: return "started";
    case worker_event_kind::completed: return "completed";
    case worker_event_kind::result_dropped: return "result_dropped";
    case worker_event_kind::retried: return "retried";
    case worker_event_kind::snoozed: return "snoozed";
    case worker_event_kind::returned: return "returned";
    case worker_event_kind::dead_lettered: return "dead_lettered";
    case worker_event_kind::damaged: return "damaged";
    case worker_event_kind::lease_lost: return "lease_lost";
    case worker_event_kind::queue_snoozed: return "queue_snoozed";
    case worker_event_kind::starved: return "starved";
    case worker_event_kind::store_failed: return "store_failed";
    case worker_event_kind::store_recovered: return "store_recovered";
  }
  return "?";
}

/// Why a worker that had a free hand and waited has looked for jobs.
enum class look_cause : std::uint8_t {
  none,  ///< it did not wait, or it knew when a job would be due
  hint,  ///< the store told it of one
  poll,  ///< its `poll` was over, and nobody had told it
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(look_cause c) noexcept {
  switch (c) {
    case look_cause::none: return "none";
    case look_cause::hint: return "hint";
    case look_cause::poll: return "poll";
  }
  return "?";
}

/// The policy of a job that refused to start it.
enum class refusing_policy : std::uint8_t {
  none,         ///< none of them: the store failed, or it is the handler that snoozed
  unique,       ///< its unique key is taken
  concurrency,  ///< its concurrency limit is reached
  rate,         ///< its rate is used up
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(refusing_policy p) noexcept {
  switch (p) {
    case refusing_policy::none: return "none";
    case refusing_policy::unique: return "unique";
    case refusing_policy::concurrency: return "concurrency";
    case refusing_policy::rate: return "rate";
  }
  return "?";
}

/// Something that a worker did. The views live for the length of the call.
struct worker_event {
  worker_event_kind kind = worker_event_kind::started;  ///< what it did
  look_cause found_by = look_cause::none;  ///< started: what made the worker look, if it waited
  refusing_policy refused_by = refusing_policy::none;  ///< snoozed and queue_snoozed: by which
  std::string_view queue{};         ///< of which queue; empty where it concerns none
  leased_job const* job = nullptr;  ///< null where it concerns no single job, or a job that the
                                    ///< store ended
  std::uint32_t count = 1;          ///< how many jobs it concerns
  std::string_view reason{};        ///< why, in words, where there is something to say
  std::string_view result{};        ///< completed: what was stored
  duration delay{};    ///< retried, snoozed and queue_snoozed: until it vests again; starved: how
                       ///< late renewals are; store_recovered: for how long the store was away
  duration took{-1};   ///< how long ago the job's handler started; negative: it has not
  error_code error{};  ///< store_failed: the store's error
};

/// Is told of everything a worker does, one event at a time, on the worker's own strand: it must be
/// quick, and not throw.
using worker_observer = std::function<void(worker_event const&)>;

}  // namespace weir

#endif
