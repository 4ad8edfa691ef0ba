// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_RECORD_HPP
#define WEIR_SCHEDULER_RECORD_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/job_codec.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// A schedule is kept as a job of a kind of weir's own, in the queue beside that of its jobs: it
// vests when its next tick has come, whoever claims it fires that, and relays it to itself. So it
// is found as due jobs are, it is fired exactly once, and it is lost as little as any job.
namespace weir {

/// The job that a schedule enqueues.
struct scheduled_job {
  std::string queue;                ///< where it goes
  std::string kind;                 ///< as of `new_job`, and so are the others
  std::string payload;              ///< its JSON form
  std::uint8_t priority = 100;      ///< 0 goes first
  std::uint32_t max_attempts = 25;  ///< before it is dead-lettered
  duration deadline{};              ///< from the enqueue; 0: none
  duration retention{};             ///< of its record

  /// By all of it.
  friend bool operator==(scheduled_job const&, scheduled_job const&) = default;
};

/// What has become of a schedule's ticks.
struct schedule_progress {
  std::uint64_t steps = 0;  ///< how often its record was written, in whatever queues
  time_point last{};        ///< ticks up to here are done with: fired, skipped, missed, or of a
                            ///< time before the definition
  std::optional<time_point> next{};  ///< the tick that comes next; empty: none
  job_id last_job{};                 ///< of the last tick that was fired; nil: none was
  std::uint64_t fired = 0;           ///< ticks whose jobs were enqueued
  std::uint64_t skipped = 0;         ///< ticks left out by the overlap policy
  std::uint64_t missed = 0;          ///< ticks that came too late for the catch-up policy
  std::string zone_data{};           ///< the release of the time zone database that `next` is of
  std::string last_queue{};          ///< the queue of `last_job`
  job_id job_before{};               ///< of the tick that was fired before that
  time_point booked{};               ///< when `next` was booked, by the date of the host that did

  /// By all of it.
  friend bool operator==(schedule_progress const&, schedule_progress const&) = default;
};

/// A schedule as a store keeps it.
struct stored_schedule {
  schedule definition;         ///< when, and how
  scheduled_job job;           ///< what
  std::string generation;      ///< of this life of the name: a removed one that is made again has
                               ///< another, and so other ids of jobs
  schedule_progress progress;  ///< how far it is
  bool paused = false;         ///< ticks come and go, and none is fired
  std::uint64_t moves = 0;     ///< how often it has come to another queue
  bool confirmed = false;      ///< its name is known to stand for it
  std::string moved_from{};   ///< the queue of its jobs before; not empty: the move is not complete
  std::uint64_t changes = 0;  ///< how often it was given another definition or job
  bool ending = false;        ///< it was removed; whoever finds it completes that

  /// By all of it.
  friend bool operator==(stored_schedule const&, stored_schedule const&) = default;
};

namespace detail {

/// The queue in which the schedules of a queue's jobs are.
[[nodiscard]] inline std::string companion_of(std::string_view queue) {
  return std::string{companion_prefix} + std::string{queue};
}

/// The job that is the schedule of this name, in whatever queue.
[[nodiscard]] inline job_id id_of_schedule(std::string_view name) {
  return id_of_texts(schedule_kind, name);
}

/// How far the schedule is that a name stands for.
enum class place_state : std::uint8_t {
  making,    ///< it may come too late, and others take the name
  standing,  ///< it has come
  ended,     ///< it is being removed, or was: what comes by its enqueue now is not it
};

/// Where the schedule of a name is: a job in a queue for all of them. A name stands for one
/// schedule, whatever queues it is put into at once; this is what decides. It vests a day after the
/// schedule has ended, and is gone then: no command of its life is under way any more.
struct schedule_place {
  std::string queue;        ///< of its jobs
  std::string generation;   ///< of the schedule there that the name stands for
  std::uint64_t moves = 0;  ///< how often that one has come to another queue
  place_state state = place_state::making;

  friend bool operator==(schedule_place const&, schedule_place const&) = default;
};
inline constexpr std::string_view places_queue = companion_prefix;
inline constexpr std::string_view place_kind = "weir.schedule.place";

[[nodiscard]] inline std::string encode_place(schedule_place const& p) {
  return nlohmann::json{
      {"queue", p.queue}, {"generation", p.generation}, {"moves", p.moves}, {"state", p.state}}
      .dump();
}
[[nodiscard]] inline std::optional<schedule_place> decode_place(std::string_view payload) {
  if (nested_too_deep(payload)) return std::nullopt;
  try {
    auto const j = nlohmann::json::parse(payload);
    auto const state = j.at("state").get<std::uint8_t>();
    if (state > static_cast<std::uint8_t>(place_state::ended)) return std::nullopt;
    return schedule_place{j.at("queue"), j.at("generation"), j.at("moves"),
                          static_cast<place_state>(state)};
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

/// The job of a tick.
[[nodiscard]] inline job_id id_of_tick(stored_schedule const& s, time_point tick) {
  return id_of_texts(schedule_kind, s.definition.name, s.generation,
                     std::to_string(tick.time_since_epoch().count()));
}

/// `2026-11-25T02:30:00Z`.
[[nodiscard]] inline std::string tick_text(time_point t) {
  auto text = to_string(tick{t, {}, std::chrono::seconds{0}, clock_change::none});
  text.resize(19);
  text[10] = 'T';
  return text + 'Z';
}

[[nodiscard]] inline nlohmann::json json_of_time(std::optional<time_point> t) {
  if (!t) return nullptr;
  return t->time_since_epoch().count();
}
[[nodiscard]] inline std::optional<time_point> time_of_json(nlohmann::json const& j) {
  if (j.is_null()) return std::nullopt;
  return time_point{duration{j.get<duration::rep>()}};
}

[[nodiscard]] inline nlohmann::json json_of(cron const& w) {
  return {{"cron", w.expression}, {"zone", w.zone}};
}
[[nodiscard]] inline nlohmann::json json_of(every const& w) {
  return {{"every", w.period.count()}, {"from", json_of_time(w.from)}};
}
[[nodiscard]] inline nlohmann::json json_of(instants const& w) {
  auto at = nlohmann::json::array();
  for (auto const t : w.at) at.push_back(json_of_time(t));
  return {{"at", std::move(at)}};
}
[[nodiscard]] inline std::variant<cron, every, instants> when_of_json(nlohmann::json const& j) {
  if (j.contains("cron")) return cron{j.at("cron"), j.at("zone")};
  if (j.contains("every")) {
    return every{duration{j.at("every").get<duration::rep>()}, time_of_json(j.at("from")).value()};
  }
  instants out;
  for (auto const& t : j.at("at")) out.at.push_back(time_of_json(t).value());
  return out;
}

/// The payload of the job that is a schedule. Its numbers are nanoseconds.
[[nodiscard]] inline std::string encode_schedule(stored_schedule const& s) {
  auto const& d = s.definition;
  auto const& p = s.progress;
  nlohmann::json out{
      {"schedule", 1},
      {"name", d.name},
      {"when", std::visit([](auto const& w) { return json_of(w); }, d.when)},
      {"overlap", static_cast<int>(d.overlap)},
      {"catch_up", {{"most", d.catch_up.most}, {"window", d.catch_up.window.count()}}},
      {"jitter", d.jitter.count()},
      {"start", json_of_time(d.start)},
      {"end", json_of_time(d.end)},
      {"version", d.version},
      {"tick_member", d.tick_member},
      {"job",
       {{"queue", s.job.queue},
        {"kind", s.job.kind},
        {"payload", s.job.payload},
        {"priority", s.job.priority},
        {"max_attempts", s.job.max_attempts},
        {"deadline", s.job.deadline.count()},
        {"retention", s.job.retention.count()}}},
      {"generation", s.generation},
      {"progress",
       {{"steps", p.steps},
        {"last", json_of_time(p.last)},
        {"next", json_of_time(p.next)},
        {"last_job", boost::uuids::to_string(p.last_job)},
        {"fired", p.fired},
        {"skipped", p.skipped},
        {"missed", p.missed},
        {"zone_data", p.zone_data},
        {"last_queue", p.last_queue},
        {"job_before", boost::uuids::to_string(p.job_before)},
        {"booked", json_of_time(p.booked)}}},
      {"paused", s.paused},
      {"moves", s.moves},
      {"confirmed", s.confirmed},
      {"moved_from", s.moved_from},
      {"changes", s.changes},
      {"ending", s.ending},
  };
  return out.dump();
}

/// The schedule again. Empty: the payload is none, or none that can be read here.
[[nodiscard]] inline std::optional<stored_schedule> decode_schedule(std::string_view payload) {
  if (nested_too_deep(payload)) return std::nullopt;
  try {
    auto const j = nlohmann::json::parse(payload);
    if (j.at("schedule") != 1) return std::nullopt;
    stored_schedule s;
    auto& d = s.definition;
    auto const span = [](nlohmann::json const& n) { return duration{n.get<duration::rep>()}; };
    d.name = j.at("name");
    d.when = when_of_json(j.at("when"));
    d.overlap = static_cast<overlap_policy>(j.at("overlap").get<std::uint8_t>());
    d.catch_up = {j.at("catch_up").at("most"), span(j.at("catch_up").at("window"))};
    d.jitter = span(j.at("jitter"));
    d.start = time_of_json(j.at("start"));
    d.end = time_of_json(j.at("end"));
    d.version = j.at("version");
    d.tick_member = j.at("tick_member");
    auto const& job = j.at("job");
    s.job = {job.at("queue"),          job.at("kind"),         job.at("payload"),
             job.at("priority"),       job.at("max_attempts"), span(job.at("deadline")),
             span(job.at("retention"))};
    s.generation = j.at("generation");
    auto const& p = j.at("progress");
    s.progress.steps = p.at("steps");
    s.progress.last = time_of_json(p.at("last")).value();
    s.progress.next = time_of_json(p.at("next"));
    auto const id = [&](char const* which) {
      return boost::uuids::string_generator{}(p.at(which).get<std::string>());
    };
    s.progress.last_job = id("last_job");
    s.progress.last_queue = p.at("last_queue");
    s.progress.job_before = id("job_before");
    if (auto const b = p.find("booked"); b != p.end()) {  // one of before has none
      s.progress.booked = time_of_json(*b).value_or(time_point{});
    }
    s.progress.fired = p.at("fired");
    s.progress.skipped = p.at("skipped");
    s.progress.missed = p.at("missed");
    s.progress.zone_data = p.at("zone_data");
    s.paused = j.at("paused");
    s.moves = j.at("moves");
    s.confirmed = j.at("confirmed");
    s.moved_from = j.at("moved_from");
    s.changes = j.at("changes");
    s.ending = j.at("ending");
    if (validate(d) || nested_too_deep(s.job.payload)) return std::nullopt;
    return s;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

/// The payload of a tick's job. Empty: its JSON form has no text of that name to be set.
[[nodiscard]] inline std::optional<std::string> payload_of_tick(stored_schedule const& s,
                                                                time_point tick) {
  if (nested_too_deep(s.job.payload)) return std::nullopt;
  if (s.definition.tick_member.empty()) return s.job.payload;
  try {
    auto j = nlohmann::json::parse(s.job.payload);
    auto& member = j.at(s.definition.tick_member);
    if (!member.is_string() && !member.is_null()) return std::nullopt;  // no job could be read
    member = tick_text(tick);
    return j.dump();
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

}  // namespace detail
}  // namespace weir

#endif
