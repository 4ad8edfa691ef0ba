// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_LIST_HPP
#define WEIR_COMMAND_LIST_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"

#include <concepts>

namespace weir::command {

/// Some commands, as a type.
template <class... Commands>
struct list_of {
  using list = list_of;  ///< itself: the base of a noun's list
};

// The commands of a noun: first those that its concept asks for, then the optional ones. Each noun
// has a short name of its own, since it is a part of many others.

/// The commands that a limiter asks for.
struct permit_commands
    : list_of<acquire_permit, renew_permit, release_permit, inspect_permits, await_permit> {};

/// The commands that `uniqueness` asks for.
struct lock_commands : list_of<acquire_lock, renew_lock, release_lock, inspect_lock> {};

/// The commands that a rate limiter asks for.
struct bucket_commands : list_of<take, peek_bucket, refund, reset_bucket, reap_buckets> {};

/// The commands that a job queue and its worker ask for.
struct job_commands
    : list_of<enqueue_jobs, peek_jobs, dequeue_jobs, obtain_lease, extend_lease, start_job,
              complete_jobs, requeue_job, snooze_job, return_job, bury_job, cancel_job, find_job,
              min_vesting_time, scan_visible_queues, update_queue_pointer, gc_stale_pointers,
              obtain_queue_lease, release_queue_lease, snooze_queue, pause_queue, resume_queue,
              read_queue_stats, list_dead_letters, replay_dead_letter, purge_job, list_queues,
              relay_job, list_jobs, await_jobs, await_cancel> {};

/// A command that waits for an event, and is no step.
template <class C>
inline constexpr bool waits_for_event =
    std::same_as<C, await_permit> || std::same_as<C, await_jobs> || std::same_as<C, await_cancel>;

/// A command that changes nothing. One that is missing here is right, and slow: Redis waits for
/// replicas, SQLite for its turn to write, and NATS does not ask again where an answer is lost.
template <class C>
inline constexpr bool reads_only =
    std::same_as<C, inspect_permits> || std::same_as<C, inspect_lock> ||
    std::same_as<C, peek_bucket> || std::same_as<C, peek_jobs> || std::same_as<C, find_job> ||
    std::same_as<C, min_vesting_time> || std::same_as<C, scan_visible_queues> ||
    std::same_as<C, read_queue_stats> || std::same_as<C, list_dead_letters> ||
    std::same_as<C, list_jobs> || std::same_as<C, list_queues>;

/// A command that makes records. All others go on in a store that is full, so that it can be
/// emptied; of `extend_lease` only without texts.
template <class C>
inline constexpr bool needs_room =
    std::same_as<C, acquire_permit> || std::same_as<C, acquire_lock> || std::same_as<C, take> ||
    std::same_as<C, enqueue_jobs> || std::same_as<C, relay_job>;

}  // namespace weir::command

#endif
