// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_COMMANDS_HPP
#define WEIR_TESTING_COMMANDS_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"

#include <concepts>

namespace weir::testing {

/// Some commands.
template <class... Commands>
struct command_list {
  using list = command_list;
};

// The commands of a noun: first those that its concept asks for, then the optional ones. Each noun
// has a short name of its own, since it is a part of many others.

struct permit_commands
    : command_list<command::acquire_permit, command::renew_permit, command::release_permit,
                   command::inspect_permits, command::await_permit> {};

struct lock_commands : command_list<command::acquire_lock, command::renew_lock,
                                    command::release_lock, command::inspect_lock> {};

struct bucket_commands : command_list<command::take, command::peek_bucket, command::refund,
                                      command::reset_bucket, command::reap_buckets> {};

struct job_commands
    : command_list<command::enqueue_jobs, command::peek_jobs, command::dequeue_jobs,
                   command::obtain_lease, command::extend_lease, command::start_job,
                   command::complete_jobs, command::requeue_job, command::snooze_job,
                   command::return_job, command::bury_job, command::cancel_job, command::find_job,
                   command::min_vesting_time, command::scan_visible_queues,
                   command::update_queue_pointer, command::gc_stale_pointers,
                   command::obtain_queue_lease, command::release_queue_lease, command::snooze_queue,
                   command::pause_queue, command::resume_queue, command::read_queue_stats,
                   command::list_dead_letters, command::replay_dead_letter, command::purge_job,
                   command::list_queues, command::await_jobs> {};

/// Does the command wait for an event, instead of being a step?
template <class C>
inline constexpr bool waits_for_event =
    std::same_as<C, command::await_permit> || std::same_as<C, command::await_jobs>;

}  // namespace weir::testing

#endif
