// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_HPP
#define WEIR_JOB_HPP

#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/uuid/uuid.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// A job's identity: a UUID made by who enqueues it, so that an enqueue may be asked again. Version
/// 7 by default, or whatever the caller gives (`enqueue_options::ids`), but never nil. Among jobs
/// of one priority and vesting time, the lower one is first.
using job_id = boost::uuids::uuid;

/// Where a job is. `leased` is derived from time: its lease has not expired yet.
enum class job_state : std::uint8_t {
  pending,    ///< waiting, visible or not
  leased,     ///< claimed, by a lease that has not expired
  completed,  ///< ended well; a record only while its retention lasts
  dead,       ///< ended in the dead letters, until it is replayed or purged
  cancelled,  ///< ended by `cancel_job`, or replaced; a record only while its retention lasts
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(job_state s) noexcept {
  switch (s) {
    case job_state::pending: return "pending";
    case job_state::leased: return "leased";
    case job_state::completed: return "completed";
    case job_state::dead: return "dead";
    case job_state::cancelled: return "cancelled";
  }
  return "?";
}

/// Has the job ended? Only a replay runs it again.
[[nodiscard]] constexpr bool is_terminal(job_state s) noexcept {
  return s != job_state::pending && s != job_state::leased;
}

/// A job as a store keeps it. Times are relative to the step that read it.
struct job {
  job_id id{};                           ///< within its queue
  std::string kind;                      ///< what kind of job it is
  std::string payload;                   ///< the bytes that were enqueued
  std::uint8_t priority = 0;             ///< 0 is the most urgent
  job_state state = job_state::pending;  ///< at the step that read it
  std::uint32_t attempts = 0;            ///< claims so far that count
  std::uint32_t max_attempts = 0;        ///< claims before it is dead-lettered
  std::uint32_t snoozes = 0;             ///< claims so far that were given back by a snooze
  duration vests_in{};  ///< until it is visible; not positive: it is. Leased: until the lease ends
  duration age{};       ///< since it was enqueued
  std::optional<duration> deadline_in;               ///< until its deadline, negative when missed
  unique_strategy strategy = unique_strategy::none;  ///< how long its unique key is taken
  conflict_policy on_conflict = conflict_policy::reject;  ///< what it did, as a newcomer, if the
                                                          ///< key was taken
  std::string unique_key;   ///< empty exactly when the strategy is `none`
  std::string headers;      ///< what came with it: see `job_headers`
  std::string memo;         ///< what a worker noted when it snoozed the job
  std::string progress;     ///< how far its handler has come: see `job_progress`
  std::string checkpoint;   ///< what its handler wants the next attempt to know
  std::string result;       ///< what `complete` stored
  std::string reason;       ///< why it last failed, or died
  std::string holder;       ///< leased: by whom
  std::uint64_t fence = 0;  ///< leased: the lease's number
};

/// A claimed job: its lease, and what a consumer needs to run it.
struct leased_job {
  job_id id{};              ///< within its queue
  std::uint64_t fence = 0;  ///< the lease's number: what it is completed, extended and requeued by
  duration expires_in{};    ///< of the lease, from the step that granted it
  std::string kind;         ///< what kind of job it is
  std::string payload;      ///< the bytes that were enqueued
  std::uint8_t priority = 0;            ///< 0 is the most urgent
  std::uint32_t attempt = 0;            ///< this one, from 1
  std::uint32_t max_attempts = 0;       ///< claims before it is dead-lettered
  std::uint32_t snoozes = 0;            ///< claims so far that were given back by a snooze
  duration age{};                       ///< since it was enqueued
  std::optional<duration> deadline_in;  ///< until its deadline; empty: it has none
  unique_strategy strategy = unique_strategy::none;  ///< how long its unique key is taken
  std::string unique_key;                            ///< empty exactly when the strategy is `none`
  std::string headers;                               ///< what came with it: see `job_headers`
  std::string memo;                                  ///< what the last snooze noted
  std::string checkpoint;                            ///< what an earlier attempt left for this one
};

/// The `reason` of a dead letter begins with this if the record of the job could not be read. A
/// dequeue that meets such a record makes a dead letter of it and goes on with the queue. The dead
/// letter keeps the id if the id can be read; its payload is what was found, cut at
/// `limits::payload_size`. A replay gives it to handlers as it stands there.
inline constexpr std::string_view damaged_record = "the record is damaged";

/// The reason of a job that was completed while the store's memory was full: its result was not
/// kept.
inline constexpr std::string_view result_had_no_room = "its result had no room";

/// A queue's jobs by state, from one snapshot: enqueued = pending + leased + completed + dead +
/// cancelled + purged.
struct queue_stats {
  std::uint64_t enqueued = 0;   ///< so far; replays are not counted again
  std::uint64_t pending = 0;    ///< waiting, visible or not
  std::uint64_t leased = 0;     ///< claimed, by leases that live
  std::uint64_t completed = 0;  ///< ended well and not purged, whether their records stand or not
  std::uint64_t dead = 0;       ///< in the dead letters now
  std::uint64_t cancelled = 0;  ///< replaced ones among them
  std::uint64_t purged = 0;     ///< ended ones that `purge_job` forgot
  bool paused = false;          ///< is it held back until `resume_queue`?
  std::optional<duration> next_in;  ///< until the first of its jobs vests; empty: it has none
                                    ///< waiting or leased
};

}  // namespace weir

#endif
