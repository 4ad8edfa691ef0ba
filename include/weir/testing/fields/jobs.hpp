// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FIELDS_JOBS_HPP
#define WEIR_TESTING_FIELDS_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/fields/locks.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// The last digits of a job's id, which is where the suite's ids differ.
[[nodiscard]] inline std::string to_text(job_id const& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (id.is_nil()) return {};
  std::string out{"#"};
  for (auto byte = std::prev(id.end(), 2); byte != id.end(); ++byte) {
    out.append(1, digits[*byte >> 4U]).append(1, digits[*byte & 15U]);
  }
  return out;
}

[[nodiscard]] constexpr std::string_view to_text(unique_strategy s) noexcept {
  constexpr std::string_view words[] = {"",
                                        "until_executed",
                                        "until_executing",
                                        "while_executing",
                                        "until_and_while_executing",
                                        "until_expired"};
  return words[static_cast<std::size_t>(s)];
}
[[nodiscard]] constexpr std::string_view to_text(conflict_policy p) noexcept {
  constexpr std::string_view words[] = {"reject", "discard", "log", "replace", "reschedule"};
  return words[static_cast<std::size_t>(p)];
}
[[nodiscard]] constexpr std::string_view to_text(enqueue_outcome o) noexcept {
  constexpr std::string_view words[] = {"enqueued", "duplicate", "replaced", "rescheduled"};
  return words[static_cast<std::size_t>(o)];
}
[[nodiscard]] constexpr std::string_view to_text(cancel_outcome o) noexcept {
  constexpr std::string_view words[] = {"cancelled", "running", "ended", "not_found"};
  return words[static_cast<std::size_t>(o)];
}
[[nodiscard]] constexpr std::string_view to_text(replay_outcome o) noexcept {
  constexpr std::string_view words[] = {"replayed", "conflict", "not_found"};
  return words[static_cast<std::size_t>(o)];
}

// ----------------------------------------------------------------------------------------- answers

inline void fields(field_list& out, std::optional<duration> const& a) {
  out.add("any", a.has_value()).add("in", a.value_or(duration::zero()));
}
template <std::same_as<bool> Bool>
void fields(field_list& out, Bool const& a) {
  out.add("answer", a);
}
template <std::same_as<std::uint32_t> Count>
void fields(field_list& out, Count const& a) {
  out.add("count", a);
}

inline void fields(field_list& out, job const& j) {
  out.add_word("id", to_text(j.id)).add("kind", j.kind).add("payload", j.payload);
  out.add("priority", j.priority).add_word("state", to_string(j.state));
  out.add("attempts", j.attempts).add("max_attempts", j.max_attempts).add("snoozes", j.snoozes);
  out.add("vests_in", j.vests_in).add("age", j.age).add("has_deadline", j.deadline_in.has_value());
  out.add("deadline_in", j.deadline_in.value_or(duration::zero()));
  out.add_word("strategy", to_text(j.strategy)).add_word("on_conflict", to_text(j.on_conflict));
  out.add("unique_key", j.unique_key).add("memo", j.memo).add("result", j.result);
  out.add("failed", !j.reason.empty()).add("holder", j.holder).add_fence("fence", j.fence);
}
inline void fields(field_list& out, leased_job const& j) {
  out.add_word("id", to_text(j.id)).add_fence("fence", j.fence).add("expires_in", j.expires_in);
  out.add("kind", j.kind).add("payload", j.payload).add("priority", j.priority);
  out.add("attempt", j.attempt).add("max_attempts", j.max_attempts).add("snoozes", j.snoozes);
  out.add("age", j.age).add("has_deadline", j.deadline_in.has_value());
  out.add("deadline_in", j.deadline_in.value_or(duration::zero()));
  out.add_word("strategy", to_text(j.strategy)).add("unique_key", j.unique_key).add("memo", j.memo);
}

template <class Jobs>
void fields_of_each(field_list& out, Jobs const& jobs) {
  std::size_t i = 0;
  for (auto const& j : jobs) out.within("jobs", i++, [&] { fields(out, j); });
}

inline void fields(field_list& out, std::vector<job> const& a) { fields_of_each(out, a); }
inline void fields(field_list& out, std::optional<job> const& a) {
  if (a) fields(out, *a);
}
inline void fields(field_list& out, std::optional<leased_job> const& a) {
  if (a) fields(out, *a);
}
inline void fields(field_list& out, dequeued const& a) {
  fields_of_each(out, a.jobs);
  out.add("dead_lettered", a.dead_lettered).add("more", a.more).add("held", a.held);
  out.add("damaged", a.damaged);
  out.add("has_next", a.next_in.has_value()).add("next_in", a.next_in.value_or(duration::zero()));
}
inline void fields(field_list& out, enqueued const& a) {
  out.add_word("outcome", to_text(a.outcome)).add_word("other", to_text(a.other));
}
inline void fields(field_list& out, command::enqueue_jobs::result const& a) {
  fields_of_each(out, a);
}
inline void fields(field_list& out, command::complete_jobs::result const& a) {
  for (auto const o : a) {
    out.add_word("outcome", o == complete_outcome::completed ? "completed" : "lease_lost");
  }
}
inline void fields(field_list& out, started const& a) {
  out.add_word("outcome", a.outcome == start_outcome::started ? "started" : "blocked");
  out.add("retry_after", a.retry_after).add_word("other", to_text(a.other));
}
inline void fields(field_list& out, requeue_outcome a) {
  out.add_word("outcome", a == requeue_outcome::requeued ? "requeued" : "dead_lettered");
}
inline void fields(field_list& out, cancel_outcome a) { out.add_word("outcome", to_text(a)); }
inline void fields(field_list& out, replayed const& a) {
  out.add_word("outcome", to_text(a.outcome)).add_word("other", to_text(a.other));
}
inline void fields(field_list& out, queue_stats const& a) {
  out.add("enqueued", a.enqueued).add("pending", a.pending).add("leased", a.leased);
  out.add("completed", a.completed).add("dead", a.dead).add("cancelled", a.cancelled);
  out.add("purged", a.purged).add("paused", a.paused).add("has_next", a.next_in.has_value());
  out.add("next_in", a.next_in.value_or(duration::zero()));
}
inline void fields(field_list& out, visible_queues const& a) {
  for (auto const& q : a.queues) out.add("queue", q);
  out.add("has_next", a.next_in.has_value()).add("next_in", a.next_in.value_or(duration::zero()));
}
inline void fields(field_list& out, job_page const& a) { fields_of_each(out, a.jobs); }
inline void fields(field_list& out, queue_page const& a) {
  for (auto const& q : a.queues) out.add("queue", q);
}

// ---------------------------------------------------------------------------------------- commands

inline void fields(field_list& out, new_job const& j) {
  out.add_word("id", to_text(j.id)).add("kind", j.kind).add("payload", j.payload);
  out.add("priority", j.priority).add("delay", j.delay).add("max_attempts", j.max_attempts);
  out.add("unique_key", j.unique_key).add_word("strategy", to_text(j.strategy));
  if (j.strategy != unique_strategy::none) out.add_word("on_conflict", to_text(j.on_conflict));
  out.add("unique_ttl", j.unique_ttl).add("deadline", j.deadline).add("retention", j.retention);
}
inline void fields(field_list& out, command::enqueue_jobs const& c) {
  out.name = "enqueue_jobs";
  out.add("queue", c.queue);
  fields_of_each(out, c.jobs);
}
inline void fields(field_list& out, command::peek_jobs const& c) {
  out.name = "peek_jobs";
  out.add("queue", c.queue).add("limit", c.limit);
}
inline void fields(field_list& out, command::dequeue_jobs const& c) {
  out.name = "dequeue_jobs";
  out.add("queue", c.queue).add("holder", c.holder).add("sequence", c.sequence);
  out.add("limit", c.limit).add("lease", c.lease);
}
inline void fields(field_list& out, command::obtain_lease const& c) {
  out.name = "obtain_lease";
  out.add("queue", c.queue)
      .add_word("id", to_text(c.id))
      .add("holder", c.holder)
      .add("lease", c.lease);
}

template <class C>
void leased_fields(field_list& out, C const& c, std::string_view name) {
  out.name = name;
  out.add("queue", c.queue).add_word("id", to_text(c.id)).add_fence("fence", c.fence);
}
inline void fields(field_list& out, command::extend_lease const& c) {
  leased_fields(out, c, "extend_lease");
  out.add("lease", c.lease);
}
inline void fields(field_list& out, command::start_job const& c) {
  leased_fields(out, c, "start_job");
}
inline void fields(field_list& out, command::complete_jobs const& c) {
  out.name = "complete_jobs";
  out.add("queue", c.queue);
  for (std::size_t i = 0; i < c.jobs.size(); ++i) {
    out.within("jobs", i, [&] {
      out.add_word("id", to_text(c.jobs[i].id)).add_fence("fence", c.jobs[i].fence);
      out.add("result", c.jobs[i].result);
    });
  }
}
inline void fields(field_list& out, command::requeue_job const& c) {
  leased_fields(out, c, "requeue_job");
  out.add("delay", c.delay).add("reason", c.reason);
}
inline void fields(field_list& out, command::snooze_job const& c) {
  leased_fields(out, c, "snooze_job");
  out.add("delay", c.delay).add("memo", c.memo);
}
inline void fields(field_list& out, command::return_job const& c) {
  leased_fields(out, c, "return_job");
}
inline void fields(field_list& out, command::bury_job const& c) {
  leased_fields(out, c, "bury_job");
  out.add("reason", c.reason);
}
inline void fields(field_list& out, command::cancel_job const& c) {
  out.name = "cancel_job";
  out.add("queue", c.queue).add_word("id", to_text(c.id)).add("running", c.running);
}
inline void fields(field_list& out, command::find_job const& c) {
  out.name = "find_job";
  out.add("queue", c.queue).add_word("id", to_text(c.id));
}

template <class C>
void queue_fields(field_list& out, C const& c, std::string_view name) {
  out.name = name;
  out.add("queue", c.queue);
}
inline void fields(field_list& out, command::min_vesting_time const& c) {
  queue_fields(out, c, "min_vesting_time");
}
inline void fields(field_list& out, command::update_queue_pointer const& c) {
  queue_fields(out, c, "update_queue_pointer");
}
inline void fields(field_list& out, command::pause_queue const& c) {
  queue_fields(out, c, "pause_queue");
}
inline void fields(field_list& out, command::resume_queue const& c) {
  queue_fields(out, c, "resume_queue");
}
inline void fields(field_list& out, command::read_queue_stats const& c) {
  queue_fields(out, c, "read_queue_stats");
}
inline void fields(field_list& out, command::snooze_queue const& c) {
  queue_fields(out, c, "snooze_queue");
  out.add("delay", c.delay);
}
inline void fields(field_list& out, command::obtain_queue_lease const& c) {
  queue_fields(out, c, "obtain_queue_lease");
  out.add("holder", c.holder).add("lease", c.lease);
}
inline void fields(field_list& out, command::release_queue_lease const& c) {
  queue_fields(out, c, "release_queue_lease");
  out.add("holder", c.holder).add_fence("fence", c.fence);
}
inline void fields(field_list& out, command::list_dead_letters const& c) {
  queue_fields(out, c, "list_dead_letters");
  out.add("limit", c.limit).add("cursor", c.cursor);
}
inline void fields(field_list& out, command::replay_dead_letter const& c) {
  queue_fields(out, c, "replay_dead_letter");
  out.add_word("id", to_text(c.id)).add("delay", c.delay);
}
inline void fields(field_list& out, command::purge_job const& c) {
  queue_fields(out, c, "purge_job");
  out.add_word("id", to_text(c.id));
}

template <class C>
void shard_fields(field_list& out, C const& c, std::string_view name) {
  out.name = name;
  out.add("shard", c.shard);
}
inline void fields(field_list& out, command::scan_visible_queues const& c) {
  shard_fields(out, c, "scan_visible_queues");
  out.add("limit", c.limit).add("entropy", c.entropy);
}
inline void fields(field_list& out, command::gc_stale_pointers const& c) {
  shard_fields(out, c, "gc_stale_pointers");
  out.add("limit", c.limit).add("grace", c.grace);
}
inline void fields(field_list& out, command::list_queues const& c) {
  shard_fields(out, c, "list_queues");
  out.add("limit", c.limit).add("cursor", c.cursor);
}
inline void fields(field_list& out, command::await_jobs const& c) {
  shard_fields(out, c, "await_jobs");
}

}  // namespace weir::testing

#endif
