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
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
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

/// The value that `read` gives; empty if it throws, because a text is not as it expects.
template <class Read>
[[nodiscard]] auto read_or_none(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const&) {
    return std::nullopt;
  }
}

/// Writes fields to JSON, or reads them. Its numbers are nanoseconds.
template <bool Reads>
class json_fields {
 public:
  explicit json_fields(nlohmann::json& object) : object_{object} {}

  [[nodiscard]] bool has(char const* name) const { return object_.contains(name); }
  /// A name and its field, and so on.
  template <class T, class... More>
  void operator()(char const* name, T& field, More&&... more) {
    pass(Reads ? object_.at(name) : object_[name], field);
    if constexpr (sizeof...(More) != 0) (*this)(std::forward<More>(more)...);
  }

 private:
  template <class T>
  static void pass(nlohmann::json& j, T& v) {
    if constexpr (requires(json_fields& io) { fields(io, v); }) {
      json_fields io{j};
      fields(io, v);
    } else if constexpr (std::is_enum_v<T>) {
      pass_as(j, v, static_cast<std::underlying_type_t<T>>(v));
    } else if constexpr (requires { v.count(); }) {
      pass_as(j, v, v.count());
    } else if constexpr (requires { v.time_since_epoch(); }) {
      pass_as(j, v, v.time_since_epoch());
    } else if constexpr (requires { v.emplace(); }) {
      if (Reads ? !j.is_null() : v.has_value()) pass(j, v ? *v : v.emplace());
    } else if constexpr (std::is_same_v<T, job_id>) {
      auto text = to_string(v);
      pass(j, text);
      v = boost::uuids::string_generator{}(text);
    } else if constexpr (std::is_same_v<T, std::vector<time_point>>) {
      if (Reads) v.resize(j.size());
      for (std::size_t i = 0; i != v.size(); ++i) pass(j[i], v[i]);
    } else if constexpr (Reads) {
      j.get_to(v);
    } else {
      j = v;
    }
  }
  template <class T, class As>
  static void pass_as(nlohmann::json& j, T& v, As as) {
    pass(j, as);
    v = T{as};
  }

  nlohmann::json& object_;
};

void fields(auto& io, schedule_place& p) {
  io("queue", p.queue, "generation", p.generation, "moves", p.moves, "state", p.state);
}
[[nodiscard]] inline bool is_good(schedule_place const& p) { return p.state <= place_state::ended; }

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

void fields(auto& io, cron& w) { io("cron", w.expression, "zone", w.zone); }
void fields(auto& io, every& w) { io("every", w.period, "from", w.from); }
void fields(auto& io, instants& w) { io("at", w.at); }
void fields(auto& io, decltype(schedule::when)& when) {
  if (io.has("every")) when = every{};
  if (io.has("at")) when = instants{};
  std::visit([&](auto& w) { fields(io, w); }, when);
}
void fields(auto& io, catch_up_policy& c) { io("most", c.most, "window", c.window); }
void fields(auto& io, scheduled_job& j) {
  io("queue", j.queue, "kind", j.kind, "payload", j.payload, "priority", j.priority, "max_attempts",
     j.max_attempts, "deadline", j.deadline, "retention", j.retention);
}
void fields(auto& io, schedule_progress& p) {
  io("steps", p.steps, "last", p.last, "next", p.next, "last_job", p.last_job, "fired", p.fired,
     "skipped", p.skipped, "missed", p.missed, "zone_data", p.zone_data, "last_queue", p.last_queue,
     "job_before", p.job_before, "booked", p.booked);
}
void fields(auto& io, stored_schedule& s) {
  auto& d = s.definition;
  auto form = 1;
  io("schedule", form, "name", d.name, "when", d.when, "overlap", d.overlap, "catch_up", d.catch_up,
     "jitter", d.jitter, "start", d.start, "end", d.end, "version", d.version, "tick_member",
     d.tick_member);
  io("job", s.job, "generation", s.generation, "progress", s.progress, "paused", s.paused, "moves",
     s.moves, "confirmed", s.confirmed, "moved_from", s.moved_from, "changes", s.changes, "ending",
     s.ending);
  if (form != 1) throw std::invalid_argument{"a schedule of a later release"};
}
[[nodiscard]] inline bool is_good(stored_schedule const& s) {
  return !validate(s.definition) && !nested_too_deep(s.job.payload);
}

/// The payload of the job that is a schedule, or a place.
template <class T>
[[nodiscard]] std::string encode_record(T record) {
  nlohmann::json j;
  json_fields<false> io{j};
  fields(io, record);
  return j.dump();
}

/// The value that was encoded. Empty: the payload is none, or none that can be read here.
template <class T>
[[nodiscard]] std::optional<T> decode_record(std::string_view payload) {
  if (nested_too_deep(payload)) return std::nullopt;
  return read_or_none([&] {
    auto j = nlohmann::json::parse(payload);
    std::optional<T> record{std::in_place};
    json_fields<true> io{j};
    fields(io, *record);
    if (!is_good(*record)) record.reset();
    return record;
  });
}

/// The payload of a tick's job. Empty: its JSON form has no text of that name to be set.
[[nodiscard]] inline std::optional<std::string> payload_of_tick(stored_schedule const& s,
                                                                time_point tick) {
  if (nested_too_deep(s.job.payload)) return std::nullopt;
  if (s.definition.tick_member.empty()) return s.job.payload;
  return read_or_none([&]() -> std::optional<std::string> {
    auto j = nlohmann::json::parse(s.job.payload);
    auto& member = j.at(s.definition.tick_member);
    if (!member.is_string() && !member.is_null()) return std::nullopt;  // no job could be read
    member = tick_text(tick);
    return j.dump();
  });
}

}  // namespace detail
}  // namespace weir

#endif
