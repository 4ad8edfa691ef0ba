// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_JOBS_HPP
#define WEIR_COMMAND_JOBS_HPP

#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Jobs wait in named queues, ordered by {priority, vesting time, id}, lower first. A job is visible
// when its vesting time has come. A lease is a vesting time in the future, so a job whose holder
// died is visible again by itself. Every queue with jobs has a pointer, never later than its first
// vesting time, by which a scan finds it. The terms, and the operations' names, are those of QuiCK
// (Foundation DB's queue at Apple; SIGMOD 2021).
namespace weir {

/// A job to be enqueued. Views only: see `command::enqueue_jobs`.
struct new_job {
  job_id id{};
  std::string_view kind;
  std::string_view payload;
  std::uint8_t priority = 100;
  duration delay{};  ///< from the enqueue to its vesting time
  std::uint32_t max_attempts = 25;
  std::string_view unique_key;  ///< empty exactly when strategy is none
  unique_strategy strategy = unique_strategy::none;
  conflict_policy on_conflict = conflict_policy::reject;
  duration unique_ttl{};  ///< until_expired: how long the key stays taken
  duration deadline{};   ///< from the enqueue; claimed later than that it is dead-lettered; 0: none
  duration retention{};  ///< how long its record and result stay after it ends well; 0: not at all
};

enum class enqueue_outcome : std::uint8_t {
  enqueued,     ///< it is in the queue; also when a job with this id already was (the same enqueue
                ///< asked again)
  duplicate,    ///< the unique key is taken by `other`; nothing was changed
  replaced,     ///< it is in the queue, and `other`, which waited, was cancelled
  rescheduled,  ///< `other`, which waits, took this job's vesting time and priority
};

struct enqueued {
  enqueue_outcome outcome = enqueue_outcome::enqueued;
  job_id other{};  ///< the job in possession of the unique key, where the outcome names one
};

/// The answer to `command::dequeue_jobs`.
struct dequeued {
  std::vector<leased_job> jobs;     ///< best first
  std::uint32_t dead_lettered = 0;  ///< jobs that this step ended instead: attempts spent by
                                    ///< crashes, or deadline missed
  bool more = false;                ///< more jobs are visible now
  bool held = false;                ///< the queue is paused or snoozed: nothing is given out
  std::optional<duration> next_in;  ///< until the queue's next job vests; empty: it has none
};

/// A job and how it went, for `command::complete_jobs`. Views only.
struct finished_job {
  job_id id{};
  std::uint64_t fence = 0;
  std::string_view result;
};

enum class complete_outcome : std::uint8_t {
  completed,   ///< also when the same lease had completed it before and its record still stands
  lease_lost,  ///< the lease is over; nothing was changed
};

enum class start_outcome : std::uint8_t {
  started,
  blocked,  ///< another job of the same unique key runs; nothing was changed
};

struct started {
  start_outcome outcome = start_outcome::started;
  duration retry_after{};  ///< blocked: what is left of the other's lease
};

enum class requeue_outcome : std::uint8_t { requeued, dead_lettered };

enum class cancel_outcome : std::uint8_t {
  cancelled,  ///< it will not run; also when it was cancelled before and its record still stands
  running,    ///< it is leased and was left alone
  ended,      ///< it has ended another way
  not_found,
};

enum class replay_outcome : std::uint8_t {
  replayed,   ///< it is pending again with no attempts spent
  conflict,   ///< its unique key was taken meanwhile; nothing was changed
  not_found,  ///< no such dead job
};

/// Due queues of one shard, the longest due first.
struct visible_queues {
  std::vector<std::string> queues;
  std::optional<duration> next_in;  ///< until the next pointer after these is due; empty: there is
                                    ///< none
};

/// One page of a listing; `cursor` continues it, empty at the end.
struct job_page {
  std::vector<job> jobs;
  std::string cursor;
};

struct queue_page {
  std::vector<std::string> queues;
  std::string cursor;
};

namespace command {

/// Adds jobs to one queue, all in one step. A conflict concerns its own job only (outcome by
/// position). Errors before any change: bad input, `store_full`. A job whose id the queue has a
/// record of, in whatever state, is not added again, nor is anything else changed: `enqueued`.
struct enqueue_jobs {
  using result = boost::container::small_vector<enqueued, 1>;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::span<new_job const> jobs;
};

/// Lists up to `limit` visible jobs in order, leasing none.
struct peek_jobs {
  using result = std::vector<job>;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::uint32_t limit = 10;
};

/// Leases up to `limit` visible jobs in order, counting an attempt for each.
///
/// A visible job whose attempts are spent (its holders crashed) or whose deadline is missed is
/// dead-lettered instead. `sequence` numbers a holder's dequeues of this queue: the same number
/// again gives those of the same leases that still live, instead of more. 0: not numbered.
struct dequeue_jobs {
  using result = dequeued;
  static constexpr bool repeatable = true;  // by its sequence

  std::string_view queue;
  std::string_view holder;
  std::uint64_t sequence = 0;
  std::uint32_t limit = 10;
  duration lease{};
};

/// Leases one job, if it is visible. Empty: it is not, or it is gone. A holder that has its lease
/// gets the same again.
struct obtain_lease {
  using result = std::optional<leased_job>;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
  std::string_view holder;
  duration lease{};
};

/// Makes a live lease last `lease` from now. Error: `lease_lost`.
struct extend_lease {
  using result = lease_renewal;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
  duration lease{};
};

/// Says that the handler of a leased job is about to start: gives up a key held until_executing and
/// takes the one held while_executing, in one step. Error: `lease_lost`.
struct start_job {
  using result = started;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
};

/// Ends leased jobs as completed, each with its result, and frees their unique keys. Outcomes by
/// position.
struct complete_jobs {
  using result = boost::container::small_vector<complete_outcome, 1>;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::span<finished_job const> jobs;
};

/// Ends a lease because the attempt failed: the job vests again after `delay`, or is dead-lettered
/// if its attempts are spent. Its run lock is freed, its unique key kept or, in the dead letters,
/// freed. Error: `lease_lost`.
struct requeue_job {
  using result = requeue_outcome;
  static constexpr bool repeatable = true;  // the lease ends with it: a repeat changes nothing and
                                            // says lease_lost

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
  duration delay{};
  std::string_view reason;
};

/// Ends a lease without a failure: the attempt is given back, `snoozes` is counted, and the job
/// vests after `delay` with `memo` noted on it. Error: `lease_lost`.
struct snooze_job {
  using result = hint;
  static constexpr bool repeatable = true;  // as for requeue_job

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
  duration delay{};
  std::string_view memo;
};

/// Gives a claimed job back as if it had not been claimed: attempt, order and memo as before.
/// Error: `lease_lost`.
struct return_job {
  using result = hint;
  static constexpr bool repeatable = true;  // as for requeue_job

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
};

/// Ends a leased job in the dead letters at once, whatever attempts it has left. Error:
/// `lease_lost`.
struct bury_job {
  using result = hint;
  static constexpr bool repeatable = true;  // as for requeue_job

  std::string_view queue;
  job_id id{};
  std::uint64_t fence = 0;
  std::string_view reason;
};

/// Ends a waiting job as cancelled. A leased one is left alone unless `running` is set: then it
/// ends too, and its holder finds its lease lost.
struct cancel_job {
  using result = cancel_outcome;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
  bool running = false;
};

/// Reads one job, in whatever state. Empty: there is no record of it.
struct find_job {
  using result = std::optional<job>;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
};

/// Until the first job of the queue vests, or the first of its leases ends. Empty: there is none.
struct min_vesting_time {
  using result = std::optional<duration>;
  static constexpr bool repeatable = true;

  std::string_view queue;
};

/// Lists up to `limit` queues of a shard whose pointer is due and which are not held.
///
/// With `entropy` 0 they are listed from the longest due. Otherwise from an instant between the
/// longest due and now that the 64 random bits pick, and from the longest due again after the end:
/// consumers spread out, and no number of backlogged queues hides another for ever (F39).
struct scan_visible_queues {
  using result = visible_queues;
  static constexpr bool repeatable = true;

  std::uint32_t shard = 0;
  std::uint32_t limit = 100;
  std::uint64_t entropy = 0;
};

/// Recomputes a queue's pointer in one step: its min vesting time, or none where it has no jobs.
/// Gives that time.
struct update_queue_pointer {
  using result = std::optional<duration>;
  static constexpr bool repeatable = true;

  std::string_view queue;
};

/// Deletes the pointers of up to `limit` queues of a shard that are empty and were due for longer
/// than `grace`.
struct gc_stale_pointers {
  using result = std::uint32_t;
  static constexpr bool repeatable = true;

  std::uint32_t shard = 0;
  std::uint32_t limit = 100;
  duration grace = std::chrono::minutes{1};
};

/// Takes the queue's advisory lease: it spares consumers work, and safety never depends on it.
struct obtain_queue_lease {
  using result = lock_grant;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::string_view holder;
  duration lease{};
};

/// Ends the queue lease of this holder and fence (0: whatever this holder has).
struct release_queue_lease {
  using result = lease_release;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::string_view holder;
  std::uint64_t fence = 0;
};

/// Holds the whole queue back for `delay`: it leaves the scan and gives out nothing. 0 ends a
/// snooze.
struct snooze_queue {
  using result = hint;
  static constexpr bool repeatable = true;

  std::string_view queue;
  duration delay{};
};

/// Holds a queue back until `resume_queue`. What is leased goes on; enqueueing goes on.
struct pause_queue {
  using result = hint;
  static constexpr bool repeatable = true;

  std::string_view queue;
};

/// Ends a pause, and a snooze.
struct resume_queue {
  using result = hint;
  static constexpr bool repeatable = true;

  std::string_view queue;
};

/// Counts the queue's jobs by state, in one snapshot.
struct read_queue_stats {
  using result = queue_stats;
  static constexpr bool repeatable = true;

  std::string_view queue;
};

/// Lists the dead letters of a queue, the oldest first; `cursor` from the page before, empty to
/// begin.
struct list_dead_letters {
  using result = job_page;
  static constexpr bool repeatable = true;

  std::string_view queue;
  std::uint32_t limit = 100;
  std::string_view cursor;
};

/// Makes a dead job pending again, with no attempts spent, if its unique key is free.
struct replay_dead_letter {
  using result = replay_outcome;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
  duration delay{};
};

/// Forgets one ended job, counting it as purged. False: no record of an ended job by this id.
struct purge_job {
  using result = bool;
  static constexpr bool repeatable = true;

  std::string_view queue;
  job_id id{};
};

/// Lists the queues of a shard by name; `cursor` from the page before, empty to begin.
struct list_queues {
  using result = queue_page;
  static constexpr bool repeatable = true;

  std::uint32_t shard = 0;
  std::uint32_t limit = 100;
  std::string_view cursor;
};

/// Completes when some queue of the shard may have become due. An optional capability: polling is
/// always bounded.
struct await_jobs {
  using result = hint;
  static constexpr bool repeatable = true;

  std::uint32_t shard = 0;
};

}  // namespace command
}  // namespace weir

#endif
