// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_BOOKING_HPP
#define WEIR_SCHEDULER_BOOKING_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/schedule/any_zone.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/schedule/tzif_zone.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// The computations of a schedule that need no store: its own job, its next tick, and the jobs of
// its ticks.
namespace weir::detail {

/// A job that is to be enqueued for a tick, with its texts.
struct ticking {
  new_job fields;
  std::string payload;
  std::string key;
};
/// False: its tick cannot be written into its payload.
[[nodiscard]] inline bool add_tick(std::vector<ticking>& to, stored_schedule const& s,
                                   time_point tick, job_id const& id) {
  auto payload = payload_of_tick(s, tick);
  if (!payload) return false;
  ticking t;
  t.fields.id = id;
  t.fields.priority = s.job.priority;
  t.fields.max_attempts = s.job.max_attempts;
  t.fields.deadline = s.job.deadline;
  t.fields.retention = s.job.retention;
  if (s.definition.overlap == overlap_policy::buffer_one) {
    // Its start waits for the end of the one before.
    t.fields.strategy = unique_strategy::while_executing;
    t.key = std::string{schedule_kind} + "/" + s.definition.name;
  }
  t.payload = std::move(*payload);
  to.push_back(std::move(t));
  return true;
}
[[nodiscard]] inline std::vector<new_job> new_jobs_of(std::vector<ticking> const& of,
                                                      std::string_view kind) {
  std::vector<new_job> out;
  for (auto const& t : of) {
    out.push_back(t.fields);
    out.back().kind = kind;
    out.back().payload = t.payload;
    out.back().unique_key = t.key;
  }
  return out;
}

/// Delay of the schedule's own job: until its next tick, or the longest one if there is none.
[[nodiscard]] inline duration delay_of(stored_schedule const& s, timetable const& table,
                                       time_point now) {
  if (s.paused || !s.progress.next) return limits::span;
  return std::clamp(saturating_sub(table.fired_at(*s.progress.next), now), duration::zero(),
                    limits::span);
}

/// The job that is the schedule; `payload` is what it views.
[[nodiscard]] inline new_job schedule_job(stored_schedule const& s, std::string_view payload,
                                          duration delay) {
  new_job j;
  j.id = id_of_schedule(s.definition.name);
  j.kind = schedule_kind;
  j.payload = payload;
  j.priority = 0;
  j.delay = delay;
  j.max_attempts = limits::attempts;
  return j;
}

/// Error: `invalid_option`, if this host knows no such zone.
[[nodiscard]] inline result<any_zone> zone_of(schedule const& s) {
  auto const* const c = std::get_if<cron>(&s.when);
  if (c == nullptr) return any_zone{};
  auto zone = any_zone::load(c->zone);
  if (zone.has_value()) return *std::move(zone);
  return explained(errc::invalid_option, "schedule: the time zone " + c->zone +
                                             " cannot be loaded here: " + zone.error().message());
}

/// Are its ticks computed by the time zone database?
[[nodiscard]] inline bool needs_zone_data(schedule const& s) {
  auto const* const c = std::get_if<cron>(&s.when);
  return c != nullptr && any_zone::is_of_database(c->zone);
}
/// The release of the zone data by which its ticks are computed here; empty: by none.
[[nodiscard]] inline std::string zone_data_of(schedule const& s) {
  return needs_zone_data(s) ? tzif_zone::release() : std::string{};
}

/// Copies generation, pause and progress to the definition that replaces another. If their ticks
/// differ, the new ones count from the change. A jitter changes none: one that is put off is still
/// to come.
inline void inherit(stored_schedule& made, stored_schedule const& before, time_point now) {
  auto const& was = before.definition;
  auto const& is = made.definition;
  bool const same = was.when == is.when && was.start == is.start && was.end == is.end;
  auto const changed_at = made.progress.last;
  made.generation = before.generation;
  made.paused = before.paused;
  made.confirmed = before.confirmed;
  made.changes = before.changes;
  made.progress = before.progress;
  if (!same) made.progress.last = std::max({before.progress.last, changed_at, now});
}

/// Books its next tick. What a newer release of the zone data has booked stays so until a host
/// that has it looks again.
inline void book(stored_schedule& made, timetable const& table, stored_schedule const& before,
                 time_point now) {
  auto const was = before.progress;
  made.progress.booked = now;
  made.progress.next = table.next(made.progress.last);
  made.progress.zone_data = zone_data_of(made.definition);
  if (!needs_zone_data(made.definition) || made.progress.zone_data >= was.zone_data) return;
  made.progress.zone_data = was.zone_data;
  if (was.next && (!made.progress.next || *was.next < *made.progress.next)) {
    made.progress.next = was.next;
  }
}

}  // namespace weir::detail

#endif
