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

/// @file
/// Jobs wait in named queues, ordered by {priority, vesting time, id}, lower first. A job is
/// visible when its vesting time has come. A lease is a vesting time in the future, so a job whose
/// holder died is visible again by itself. Every queue with jobs has a pointer, never later than
/// its first vesting time, by which a scan finds it. The terms, and the operations' names, are
/// those of QuiCK (Foundation DB's queue at Apple; SIGMOD 2021).

namespace weir {

/// A queue whose name begins with this belongs to the queue whose name follows, and is in its
/// shard, so that one step can change both (`command::relay_job`). Schedules are kept in such.
/// Scans and hints of schedules are apart from those of all other queues: a backlog of jobs hides
/// no tick, and no job wakes who fires schedules.
inline constexpr std::string_view companion_prefix = "weir.schedules/";

/// The kind of the jobs that are schedules.
inline constexpr std::string_view schedule_kind = "weir.schedule";

/// The queue of the register of workers. It is paused, and its jobs are records of workers: see
/// `registered_worker`.
inline constexpr std::string_view workers_queue = "weir.workers";

/// The kind of the jobs that are records of workers.
inline constexpr std::string_view worker_kind = "weir.worker";

/// Is it a queue that weir keeps for itself: of schedules, or of the register of workers?
[[nodiscard]] constexpr bool is_kept_by_weir(std::string_view queue) noexcept {
  return queue.starts_with(companion_prefix) || queue == workers_queue;
}

/// A job to be enqueued. Views only: see `command::enqueue_jobs`.
struct new_job {
  job_id id{};  ///< made by who enqueues it, never nil; one that the queue has a record of is not
                ///< added again
  std::string_view kind;  ///< what kind of job it is, for who runs it, 1…`limits::key_size` bytes
  std::string_view payload;     ///< any bytes, up to `limits::payload_size`; no store reads them
  std::uint8_t priority = 100;  ///< 0 goes first
  duration delay{};             ///< from the enqueue to its vesting time, [0, `limits::span`]
  std::uint32_t max_attempts = 25;  ///< claims before it is dead-lettered, 1…`limits::attempts`
  std::string_view unique_key;      ///< empty exactly when strategy is none
  unique_strategy strategy = unique_strategy::none;       ///< how long the unique key is taken
  conflict_policy on_conflict = conflict_policy::reject;  ///< what is done if it is
  duration unique_ttl{};  ///< until_expired: how long the key stays taken
  duration deadline{};   ///< from the enqueue; claimed later than that it is dead-lettered; 0: none
  duration retention{};  ///< how long its record and result stay after it ends well or is
                         ///< cancelled; 0: not at all
  std::string_view headers{};  ///< what goes with it, as `job_headers` writes it; up to
                               ///< `limits::headers_size` bytes
};

/// The outcome of enqueueing a job.
enum class enqueue_outcome : std::uint8_t {
  enqueued,     ///< it is in the queue; also when a job with this id already was (the same enqueue
                ///< asked again)
  duplicate,    ///< the unique key is taken by `other`; nothing was changed
  replaced,     ///< it is in the queue, and `other`, which waited, was cancelled
  rescheduled,  ///< `other`, which waits, took this job's vesting time and priority
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(enqueue_outcome o) noexcept {
  switch (o) {
    case enqueue_outcome::enqueued: return "enqueued";
    case enqueue_outcome::duplicate: return "duplicate";
    case enqueue_outcome::replaced: return "replaced";
    case enqueue_outcome::rescheduled: return "rescheduled";
  }
  return "?";
}

/// The answer to one of the jobs of `command::enqueue_jobs`.
struct enqueued {
  enqueue_outcome outcome = enqueue_outcome::enqueued;  ///< in the queue, or why not
  job_id other{};  ///< the job in possession of the unique key, where the outcome names one
};

/// The answer to `command::dequeue_jobs`.
struct dequeued {
  std::vector<leased_job> jobs;     ///< best first
  std::uint32_t dead_lettered = 0;  ///< jobs that this step ended instead: attempts spent by
                                    ///< crashes, or deadline missed
  bool more = false;  ///< more jobs are visible now; also where `limits::answer_bytes`
                      ///< ended the answer
  bool held = false;  ///< the queue is paused or snoozed: nothing is given out
  std::optional<duration> next_in;  ///< its next job vests no earlier; empty: it has none
  std::uint32_t damaged = 0;  ///< records that cannot be read, which this step set aside as dead
                              ///< letters: see `damaged_record`
};

/// A job and how it went, for `command::complete_jobs`. Views only.
struct finished_job {
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
  std::string_view result;  ///< what to keep with the record, up to `limits::payload_size` bytes
};

/// The outcome of completing a job.
enum class complete_outcome : std::uint8_t {
  completed,   ///< also when the same lease had completed it before and its record still stands
  lease_lost,  ///< the lease is over; nothing was changed
  completed_without_result,  ///< completed by this step; the store had no room for the result
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(complete_outcome o) noexcept {
  switch (o) {
    case complete_outcome::completed: return "completed";
    case complete_outcome::completed_without_result: return "completed_without_result";
    case complete_outcome::lease_lost: return "lease_lost";
  }
  return "?";
}

/// May the handler start?
enum class start_outcome : std::uint8_t {
  started,  ///< the run lock, if the job has one, is its own
  blocked,  ///< another job of the same unique key runs; nothing was changed
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(start_outcome o) noexcept {
  switch (o) {
    case start_outcome::started: return "started";
    case start_outcome::blocked: return "blocked";
  }
  return "?";
}

/// The answer to `command::start_job`.
struct started {
  start_outcome outcome = start_outcome::started;  ///< may it start?
  duration retry_after{};                          ///< blocked: what is left of the other's lease
  job_id other{};                                  ///< blocked: the job that has the run lock
};

/// The outcome of a failed attempt: the job waits again, or its attempts are spent.
enum class requeue_outcome : std::uint8_t {
  requeued,       ///< it waits again
  dead_lettered,  ///< its attempts are spent
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(requeue_outcome o) noexcept {
  switch (o) {
    case requeue_outcome::requeued: return "requeued";
    case requeue_outcome::dead_lettered: return "dead_lettered";
  }
  return "?";
}

/// The outcome of a relay.
enum class relay_outcome : std::uint8_t {
  relayed,    ///< it has ended, and the others were added
  changed,    ///< its payload is another one; nothing was changed
  not_found,  ///< there is no such job that waits or is leased
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(relay_outcome o) noexcept {
  switch (o) {
    case relay_outcome::relayed: return "relayed";
    case relay_outcome::changed: return "changed";
    case relay_outcome::not_found: return "not_found";
  }
  return "?";
}

/// The answer to `command::relay_job`.
struct relayed {
  relay_outcome outcome = relay_outcome::relayed;    ///< has it ended, or why not
  boost::container::small_vector<enqueued, 1> jobs;  ///< relayed: of `jobs`, then of `next`, by
                                                     ///< position; otherwise empty
};

/// The outcome of cancelling a job.
enum class cancel_outcome : std::uint8_t {
  cancelled,  ///< it will not run; also when it was cancelled before and its record still stands
  running,    ///< it is leased and was left alone
  ended,      ///< it has ended another way
  not_found,  ///< there is no record of it, or no longer
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(cancel_outcome o) noexcept {
  switch (o) {
    case cancel_outcome::cancelled: return "cancelled";
    case cancel_outcome::running: return "running";
    case cancel_outcome::ended: return "ended";
    case cancel_outcome::not_found: return "not_found";
  }
  return "?";
}

/// The outcome of replaying a dead job.
enum class replay_outcome : std::uint8_t {
  replayed,   ///< it is pending again with no attempts spent
  conflict,   ///< its unique key was taken meanwhile by `other`; nothing was changed
  not_found,  ///< no such dead job
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(replay_outcome o) noexcept {
  switch (o) {
    case replay_outcome::replayed: return "replayed";
    case replay_outcome::conflict: return "conflict";
    case replay_outcome::not_found: return "not_found";
  }
  return "?";
}

/// The answer to `command::replay_dead_letter`.
struct replayed {
  replay_outcome outcome = replay_outcome::replayed;  ///< pending again, or why not
  job_id other{};  ///< conflict: the job in possession of the unique key
};

/// Due queues of one shard, the longest due first.
struct visible_queues {
  std::vector<std::string> queues;  ///< their names, the longest due first
  std::optional<duration> next_in;  ///< until the next pointer after these is due; empty: there is
                                    ///< none
};

/// One page of a listing; `cursor` continues it, empty at the end.
struct job_page {
  std::vector<job> jobs;  ///< in the order of the listing
  std::string cursor;     ///< for the next page, meaningful to the store only
};

/// One page of names; `cursor` continues it, empty at the end.
struct queue_page {
  std::vector<std::string> queues;  ///< by name
  std::string cursor;               ///< for the next page, meaningful to the store only
};

namespace command {

/// Adds jobs to one queue, all in one step. A conflict concerns its own job only (outcome by
/// position). Errors before any change: bad input, `store_full`. A job whose id the queue has a
/// record of, in whatever state, is not added again, nor is anything else changed: `enqueued`.
///
/// A job in possession of a unique key that waits, and whose attempts are spent (its last holder
/// let the lease end) or whose deadline is missed, can never run. It gives the key up to a newcomer
/// under any policy, also in a queue that is paused or snoozed: it is dead-lettered in this step,
/// and the newcomer is `enqueued`. A key held until_expired stays taken for its time: such a job is
/// as good as ended, and the newcomer a `duplicate` under any policy. It may outlive the record of
/// its job; another job that has the id by then is left alone.
struct enqueue_jobs {
  using result = boost::container::small_vector<enqueued, 1>;  ///< what became of each, by position
  static constexpr bool repeatable = true;                     ///< by their ids

  std::string_view queue;         ///< where they go: its name, 1…`limits::key_size` bytes
  std::span<new_job const> jobs;  ///< 1…`limits::batch` of them, with up to `limits::batch_bytes`
};

/// Lists up to `limit` visible jobs in order, leasing none: fewer if their texts exceed
/// `limits::answer_bytes`.
struct peek_jobs {
  using result = std::vector<job>;          ///< best first
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;    ///< its name, 1…`limits::key_size` bytes
  std::uint32_t limit = 10;  ///< 1…`limits::batch`
};

/// Leases up to `limit` visible jobs in order, counting an attempt for each: fewer, with `more`
/// set, if their texts exceed `limits::answer_bytes`.
///
/// A visible job whose attempts are spent (its holders crashed) or whose deadline is missed is
/// dead-lettered instead, at most 100 by one dequeue. Where it stopped for that, it says `more` and
/// may give fewer than it could, or none. A queue that is held (paused or snoozed) gives nothing
/// out, and none of its jobs is dead-lettered by this; a newcomer may have their unique keys all
/// the same (`enqueue_jobs`, `replay_dead_letter`).
///
/// A record that cannot be read is set aside as a dead letter (`damaged_record`) and counted in
/// `damaged`; the queue goes on without it. These count towards the 100.
///
/// `sequence` numbers a holder's dequeues of this queue: the same number again gives those of the
/// same leases that still live, instead of more. Once all of them are over it counts as a new
/// dequeue. 0: not numbered.
struct dequeue_jobs {
  using result = dequeued;                  ///< the leases, and what else was found
  static constexpr bool repeatable = true;  ///< by its sequence

  std::string_view queue;      ///< its name, 1…`limits::key_size` bytes
  std::string_view holder;     ///< who claims, 1…`limits::holder_size` bytes
  std::uint64_t sequence = 0;  ///< of this holder's dequeues of the queue; 0: not numbered
  std::uint32_t limit = 10;    ///< leases at most, 1…`limits::batch`
  duration lease{};            ///< how long each lasts, (0, `limits::span`]
};

/// Leases one job that is visible; with `early`, one that waits for its vesting time, too. Empty:
/// there is no such job. A holder that has its lease gets the same again.
struct obtain_lease {
  using result = std::optional<leased_job>;  ///< the lease, if there is one
  static constexpr bool repeatable = true;   ///< a holder that asks again is given the same lease

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::string_view holder;  ///< who claims, 1…`limits::holder_size` bytes
  duration lease{};         ///< how long it lasts, (0, `limits::span`]
  bool early = false;       ///< before its vesting time, too: a delayed or snoozed job
};

/// Makes a live lease last `lease` from now, and keeps with the job how far its handler has come.
/// Both texts outlast the lease, a failure and a replay. Errors: `lease_lost`; `store_full` or
/// `disk_full` where there is no room for the texts. Then nothing was changed.
struct extend_lease {
  using result = lease_renewal;             ///< what is left of it now
  static constexpr bool repeatable = true;  ///< asked again, it counts from then

  std::string_view queue;         ///< its name, 1…`limits::key_size` bytes
  job_id id{};                    ///< of the job
  std::uint64_t fence = 0;        ///< the lease's number, from the claim
  duration lease{};               ///< from this step on, (0, `limits::span`]
  std::string_view progress{};    ///< as `job_progress` writes it, up to `limits::progress_size`
                                  ///< bytes; empty: as it was
  std::string_view checkpoint{};  ///< for the next attempt, up to `limits::checkpoint_size` bytes;
                                  ///< empty: as it was
};

/// Says that the handler of a leased job is about to start: gives up a key held until_executing and
/// takes the one held while_executing, in one step. The run lock is free as soon as the lease of
/// the job that took it is over, by command or by time, also in a queue that is held. Error:
/// `lease_lost`.
struct start_job {
  using result = started;                   ///< may it start?
  static constexpr bool repeatable = true;  ///< a lease that has its run lock keeps it

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
};

/// Ends leased jobs as completed, each with its result, and frees their unique keys. Outcomes by
/// position.
struct complete_jobs {
  using result = boost::container::small_vector<complete_outcome, 1>;  ///< what became of each, by
                                                                       ///< position
  static constexpr bool repeatable = true;                             ///< by their leases' numbers

  std::string_view queue;              ///< its name, 1…`limits::key_size` bytes
  std::span<finished_job const> jobs;  ///< 1…`limits::batch` of them, with up to
                                       ///< `limits::batch_bytes` of results
};

/// Ends a job as completed and, in the same step, adds others: to its queue, and to another queue
/// of the same shard. So a chain of jobs has no gap between two links, and a record that weir keeps
/// as a job, such as a schedule, goes from one state to the next exactly once.
///
/// The job is named by its lease, or, with `fence` 0, by the payload that it has: then it ends
/// whether it waits or is leased, and of several that relay it from the same state, one does. The
/// others are added as by `enqueue_jobs`, after the job's unique key is free. One of `next` may
/// have the id of the job that ends, if that one has no retention.
///
/// Errors before any change: bad input, `lease_lost`, `invalid_shard` (`to` is in another shard),
/// `store_full`.
struct relay_job {
  using result = relayed;                   ///< has it ended, and what became of the others
  static constexpr bool repeatable = true;  ///< what was relayed is found by this no more

  std::string_view queue;       ///< its name, 1…`limits::key_size` bytes
  job_id id{};                  ///< of the job that ends
  std::uint64_t fence = 0;      ///< the lease's number, from the claim; 0: by `expected`
  std::string_view expected{};  ///< the payload that it must have; with a fence: empty
  std::string_view stored{};    ///< its result, kept with its record, up to `limits::payload_size`
                                ///< bytes
  std::span<new_job const> next{};  ///< what is added to `queue`
  std::string_view to{};            ///< where `jobs` go: another queue; empty exactly if they are
  std::span<new_job const> jobs{};  ///< what is added to `to`; of both together up to
                                    ///< `limits::batch`, with up to `limits::batch_bytes`
};

/// Ends a lease because the attempt failed: the job vests again after `delay`, or is dead-lettered
/// if its attempts are spent. Its run lock is freed, its unique key kept or, in the dead letters,
/// freed. A key that the start of its handler gave up is taken again if it is free, as by
/// `snooze_job` and `return_job`; otherwise the job waits without. Error: `lease_lost`.
struct requeue_job {
  using result = requeue_outcome;           ///< waits again, or dead
  static constexpr bool repeatable = true;  ///< the lease ends with it: a repeat changes nothing
                                            ///< and says lease_lost

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
  duration delay{};         ///< until it vests again, [0, `limits::span`]
  std::string_view reason;  ///< what went wrong; cut at `limits::reason_size` bytes
};

/// Ends a lease without a failure: the attempt is given back, `snoozes` is counted, and the job
/// vests after `delay` with `memo` noted on it. Error: `lease_lost`.
struct snooze_job {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< as for requeue_job

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
  duration delay{};         ///< until it vests again, [0, `limits::span`]
  std::string_view memo;    ///< for who claims it next, up to `limits::memo_size` bytes
};

/// Gives a claimed job back as if it had not been claimed: attempt, order and memo as before.
/// Error: `lease_lost`.
struct return_job {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< as for requeue_job

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
};

/// Ends a leased job in the dead letters at once, whatever attempts it has left. Error:
/// `lease_lost`.
struct bury_job {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< as for requeue_job

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  job_id id{};              ///< of the job
  std::uint64_t fence = 0;  ///< the lease's number, from the claim
  std::string_view reason;  ///< why it can never succeed; cut at `limits::reason_size` bytes
};

/// Ends a waiting job as cancelled. A leased one is left alone unless `running` is set: then it
/// ends too, and its holder finds its lease lost: at once, if it awaits that (`await_cancel`).
struct cancel_job {
  using result = cancel_outcome;            ///< cancelled, or why not
  static constexpr bool repeatable = true;  ///< what was cancelled stays so

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
  job_id id{};             ///< of the job
  bool running = false;    ///< also if somebody has a lease of it
};

/// Reads one job, in whatever state. Empty: there is no record of it.
struct find_job {
  using result = std::optional<job>;        ///< the job, if there is a record
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
  job_id id{};             ///< of the job
};

/// Until the first job of the queue vests, or the first of its leases ends. Empty: there is none.
struct min_vesting_time {
  using result = std::optional<duration>;   ///< not positive: a job is visible now
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
};

/// The part of a scan in hints that a store gives in turn (`await_jobs`).
enum class hint_turn : std::uint8_t {
  none,    ///< nothing
  taken,   ///< it is asked before a wait in turn: that begins here, if no queue is due
  passed,  ///< who asks was told in turn and claims nothing: if a queue is due, the next one is
           ///< told
};

/// Lists up to `limit` queues of a shard whose pointer is due and which are not held, either those
/// of schedules or all others: fewer if their names exceed `limits::answer_bytes`. `next_in` is
/// then not positive.
///
/// With `entropy` 0 they are listed from the longest due. Otherwise from an instant between the
/// longest due and now that the 64 random bits pick, and from the longest due again after the end:
/// consumers spread out, and no number of backlogged queues hides another for ever (F39).
struct scan_visible_queues {
  using result = visible_queues;            ///< the queues, and when to look again
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::uint32_t shard = 0;           ///< below the store's `shard_count()`
  std::uint32_t limit = 100;         ///< 1…`limits::batch`
  std::uint64_t entropy = 0;         ///< random bits, or 0
  bool schedules = false;            ///< queues of schedules, and no others; false: the others
  hint_turn turn = hint_turn::none;  ///< of a store that gives no hints in turn: without meaning
};

/// Recomputes a queue's pointer in one step: its min vesting time, or none where it has no jobs.
/// Gives that time.
struct update_queue_pointer {
  using result = std::optional<duration>;   ///< as for `min_vesting_time`
  static constexpr bool repeatable = true;  ///< it is computed anew each time

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
};

/// Deletes the pointers of up to `limit` queues of a shard that are empty and were due for longer
/// than `grace`. A store may leave it at 100 of them.
struct gc_stale_pointers {
  using result = std::uint32_t;             ///< how many were deleted
  static constexpr bool repeatable = true;  ///< what is gone is gone

  std::uint32_t shard = 0;                   ///< below the store's `shard_count()`
  std::uint32_t limit = 100;                 ///< 1…`limits::batch`
  duration grace = std::chrono::minutes{1};  ///< [0, `limits::span`]
};

/// Takes the queue's advisory lease: it spares consumers work, and safety never depends on it.
struct obtain_queue_lease {
  using result = lock_grant;                ///< as for a lock
  static constexpr bool repeatable = true;  ///< a holder that asks again is given the same lease

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  std::string_view holder;  ///< who asks, 1…`limits::holder_size` bytes
  duration lease{};         ///< how long it lasts, (0, `limits::span`]
};

/// Ends the queue lease of this holder and fence (0: whatever this holder has).
struct release_queue_lease {
  using result = lease_release;             ///< what ended in this step
  static constexpr bool repeatable = true;  ///< what is over stays over

  std::string_view queue;   ///< its name, 1…`limits::key_size` bytes
  std::string_view holder;  ///< who has it
  std::uint64_t fence = 0;  ///< its number, from the grant; 0: any
};

/// Holds the whole queue back for `delay`: it leaves the scan and gives out nothing. A delay of 0
/// ends a snooze, unless it says `at_least`.
struct snooze_queue {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< asked again, it counts from then

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
  duration delay{};        ///< [0, `limits::span`]
  bool at_least = false;   ///< a snooze that lasts longer goes on
};

/// Holds a queue back until `resume_queue`. What is leased goes on; enqueueing goes on.
struct pause_queue {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< a paused queue stays paused

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
};

/// Ends a pause, and a snooze.
struct resume_queue {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< what goes on goes on

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
};

/// Counts the queue's jobs by state, in one snapshot.
struct read_queue_stats {
  using result = queue_stats;               ///< the counts
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
};

/// Lists the dead letters of a queue, the oldest first; `cursor` from the page before, empty to
/// begin. A page has fewer than `limit` if their texts exceed `limits::answer_bytes`. Error:
/// `invalid_option` for a text that cannot be a cursor.
struct list_dead_letters {
  using result = job_page;                  ///< the dead jobs, and how to go on
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;     ///< its name, 1…`limits::key_size` bytes
  std::uint32_t limit = 100;  ///< 1…`limits::batch`
  std::string_view cursor;    ///< of the page before
};

/// Lists the records of a queue in one state; `cursor` from the page before, empty to begin. The
/// order is the store's own, and a job that moves while pages are read may be listed twice or not
/// at all; one that stays as it is, is listed once. At most 1,000 records are looked at for a page:
/// it may have fewer jobs than `limit`, or none, and a cursor. Error: `invalid_option` for a text
/// that cannot be a cursor.
struct list_jobs {
  using result = job_page;                  ///< the jobs, and how to go on
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view queue;                ///< its name, 1…`limits::key_size` bytes
  job_state state = job_state::pending;  ///< the jobs in this state
  std::uint32_t limit = 100;             ///< 1…`limits::batch`
  std::string_view cursor{};             ///< of the page before
};

/// Makes a dead job pending again, if its unique key is free: with no attempts and no snoozes
/// spent, and its deadline counted from now. A job that has the key and can never run gives it up
/// as for `enqueue_jobs`. A key held until_expired is not taken again: its time counts from the
/// enqueue.
struct replay_dead_letter {
  using result = replayed;                  ///< pending again, or why not
  static constexpr bool repeatable = true;  ///< asked again, it is `not_found`, and nothing is
                                            ///< changed

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
  job_id id{};             ///< of the job
  duration delay{};        ///< until it vests, [0, `limits::span`]
};

/// Forgets one ended job, counting it as purged. False: no record of an ended job by this id.
struct purge_job {
  using result = bool;                      ///< was there a record?
  static constexpr bool repeatable = true;  ///< what is forgotten stays so; a repeat says false

  std::string_view queue;  ///< its name, 1…`limits::key_size` bytes
  job_id id{};             ///< of the job
};

/// Lists the queues of a shard by name; `cursor` from the page before, empty to begin. A page has
/// fewer than `limit` if their names exceed `limits::answer_bytes`.
struct list_queues {
  using result = queue_page;                ///< the names, and how to go on
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::uint32_t shard = 0;    ///< below the store's `shard_count()`
  std::uint32_t limit = 100;  ///< 1…`limits::batch`
  std::string_view cursor;    ///< of the page before
};

/// Completes when some queue of the shard may have become due: one of schedules, or one of the
/// others. An optional capability: polling is
/// always bounded.
struct await_jobs {
  using result = hint;                      ///< nothing but that it is time to ask again
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::uint32_t shard = 0;  ///< below the store's `shard_count()`
  bool schedules = false;   ///< queues of schedules; false: the others
  /// One of those who wait so is told, and not all: it claims what is due, or passes that on by a
  /// scan. A store that gives no hints in turn takes no notice.
  bool in_turn = false;
};

/// Completes when a job that the holder has a lease of is cancelled, and may complete without that.
/// The holder then renews its leases, and finds the one of that job lost. An optional capability: a
/// holder that is not told finds it at its next renewal.
struct await_cancel {
  using result = hint;                      ///< nothing but that it is time to renew
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view holder;  ///< who claimed, 1…`limits::holder_size` bytes
};

}  // namespace command
}  // namespace weir

#endif
