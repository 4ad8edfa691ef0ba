// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_JOB_FIELDS_HPP
#define WEIR_STORE_NATS_JOB_FIELDS_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/list.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/unique.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

// What is written of each command in the log of a shard, and in which order. Neither the numbers of
// the commands nor their fields may ever change their meaning: another version of weir reads them.
// What is added is a new command, last, in another version of the log (job_log.hpp).
namespace weir::detail {

/// The commands that change a shard, each in the place of its number in the log. The first place is
/// nobody's, so that a zero is no command.
using nats_job_command = std::variant<
    std::monostate, command::enqueue_jobs, command::dequeue_jobs, command::obtain_lease,
    command::extend_lease, command::start_job, command::complete_jobs, command::requeue_job,
    command::snooze_job, command::return_job, command::bury_job, command::cancel_job,
    command::update_queue_pointer, command::gc_stale_pointers, command::obtain_queue_lease,
    command::release_queue_lease, command::snooze_queue, command::pause_queue,
    command::resume_queue, command::replay_dead_letter, command::purge_job, command::relay_job>;

template <class C, class Variant>
struct place_in;
template <class C, class First, class... Rest>
struct place_in<C, std::variant<First, Rest...>> {
  static constexpr std::size_t value =
      std::is_same_v<C, First> ? 0 : 1 + place_in<C, std::variant<Rest...>>::value;
};
template <class C>
struct place_in<C, std::variant<>> {
  static constexpr std::size_t value = 0;
};

/// The number of a command in the log.
template <class C>
inline constexpr std::size_t nats_job_number = place_in<C, nats_job_command>::value;

template <class C>
concept nats_logged_command = (nats_job_number<C> < std::variant_size_v<nats_job_command>);

template <class... Cs>
constexpr bool nats_logs_what_changes(command::list_of<Cs...>) {
  return ((nats_logged_command<Cs> || command::reads_only<Cs> || command::waits_for_event<Cs>) &&
          ...);
}
static_assert(nats_logs_what_changes(command::job_commands{}));

// `io` is a writer, or a reader of what is then filled in.

template <class Io, class Job>
void job_fields(Io& io, Job& j)
  requires std::is_same_v<std::remove_const_t<Job>, new_job>
{
  io(j.id);
  io(j.kind);
  io(j.payload);
  io(j.priority);
  io(j.delay);
  io(j.max_attempts);
  io(j.unique_key);
  if constexpr (std::is_const_v<Job>) {
    io(j.strategy);
    io(j.on_conflict);
  } else {
    io(j.strategy, unique_strategy::until_expired);
    io(j.on_conflict, conflict_policy::reschedule);
  }
  io(j.unique_ttl);
  io(j.deadline);
  io(j.retention);
  io(j.headers);
}
template <class Io, class Job>
void job_fields(Io& io, Job& j)
  requires std::is_same_v<std::remove_const_t<Job>, finished_job>
{
  io(j.id);
  io(j.fence);
  io(j.result);
}

/// All but the jobs of those commands that have many. Members come in this order whatever their
/// order in the command is.
template <class Io, class Command>
void job_command_fields(Io& io, Command& c) {
  if constexpr (requires { c.queue; }) io(c.queue);
  if constexpr (requires { c.id; }) io(c.id);
  if constexpr (requires { c.holder; }) io(c.holder);
  if constexpr (requires { c.fence; }) io(c.fence);
  if constexpr (requires { c.sequence; }) io(c.sequence);
  if constexpr (requires { c.limit; }) io(c.limit);
  if constexpr (requires { c.lease; }) io(c.lease);
  if constexpr (requires { c.early; }) io(c.early);
  if constexpr (requires { c.delay; }) io(c.delay);
  if constexpr (requires { c.grace; }) io(c.grace);
  if constexpr (requires { c.reason; }) io(c.reason);
  if constexpr (requires { c.memo; }) io(c.memo);
  if constexpr (requires { c.running; }) io(c.running);
  if constexpr (requires { c.expected; }) io(c.expected);
  if constexpr (requires { c.stored; }) io(c.stored);
  if constexpr (requires { c.to; }) io(c.to);
  if constexpr (requires { c.checkpoint; }) {
    io(c.progress);
    io(c.checkpoint);
  }
  if constexpr (requires { c.at_least; }) io(c.at_least);
}

}  // namespace weir::detail

#endif
