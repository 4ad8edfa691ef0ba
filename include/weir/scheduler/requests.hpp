// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_REQUESTS_HPP
#define WEIR_SCHEDULER_REQUESTS_HPP

#include "weir/codec.hpp"
#include "weir/command/jobs.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/rule/job_cursor.hpp"
#include "weir/rule/shards.hpp"
#include "weir/rule/validate.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/scheduler/booking.hpp"
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/moves.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

/// What has become of a schedule that was put into a store.
enum class put_outcome : std::uint8_t {
  created,     ///< there was none of its name
  changed,     ///< it takes the place of the one that there was
  unchanged,   ///< the one that there was is the same: nothing was changed, but its next tick if
               ///< that comes earlier by a newer release of the time zone database
  kept_newer,  ///< the one that there was has a higher version: nothing was changed
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(put_outcome o) noexcept {
  switch (o) {
    case put_outcome::created: return "created";
    case put_outcome::changed: return "changed";
    case put_outcome::unchanged: return "unchanged";
    case put_outcome::kept_newer: return "kept_newer";
  }
  return "?";
}

/// One page of schedules.
struct schedule_page {
  std::vector<stored_schedule> schedules;  ///< in the store's order
  std::string cursor;                      ///< for the next page; empty: there is none
};

namespace detail {

/// The operations of `schedules`.
class schedule_requests {
  using desk = schedule_desk;
  using self = desk::self;
  template <class T>
  using answer = desk::answer<T>;

 public:
  static answer<put_outcome> put(self by, stored_schedule wanted) {
    if (auto const ec = problem(wanted)) throw desk::failure{ec};
    auto const zone = zone_of(wanted.definition).value();
    std::optional<std::uint64_t> moved;    // number of the move that this put has begun
    std::optional<schedule_place> making;  // place that another put was seen to make
    int looks = 0;                         // how often it was seen
    for (int tries = 0;; desk::again(tries)) {
      auto found = co_await desk::locate(by, wanted.definition.name);
      if (moved && (!found.there || found.there->value.moves != *moved)) {
        co_return put_outcome::changed;  // and others have changed it since
      }
      if (!found.there) {
        // Two puts of a new name would replace each other's place for ever, so the second looks on.
        // After `most_looks` the first may have died.
        bool const others = found.place && found.place->state == place_state::making;
        if (others && std::exchange(making, found.place) != found.place) looks = 0;
        if (others && ++looks <= most_looks) continue;
        if (co_await schedule_moves::create(by, wanted, found.place, zone)) {
          co_return put_outcome::created;
        }
        continue;
      }
      auto const& there = *found.there;
      if (co_await schedule_moves::finish(by, found)) continue;
      if (moved) co_return put_outcome::changed;
      if (there.value.definition.version > wanted.definition.version) {
        co_return put_outcome::kept_newer;
      }
      if (there.value.definition == wanted.definition && there.value.job == wanted.job) {
        // By newer zone data its next tick may come earlier than it was booked for.
        auto const& p = there.value.progress;
        auto const next = timetable{wanted.definition, zone}.next(p.last);
        bool const is_earlier = next && (!p.next || *next < *p.next);
        if (!is_earlier || zone_data_of(wanted.definition) <= p.zone_data) {
          co_return put_outcome::unchanged;
        }
        if (co_await schedule_moves::replace(by, there, there.value, zone)) {
          co_return put_outcome::unchanged;
        }
        continue;
      }
      if (there.value.job.queue != wanted.job.queue) {
        bool const begun = co_await schedule_moves::move(by, wanted, there.value, zone);
        if (begun) moved = there.value.moves + 1;
        continue;  // it is found where it is now, and the move is completed
      }
      auto changed = wanted;
      changed.moves = there.value.moves;
      inherit(changed, there.value, by->date());
      ++changed.changes;
      bool const done = co_await schedule_moves::replace(by, there, std::move(changed), zone);
      if (done) co_return put_outcome::changed;
    }
  }

  static answer<std::optional<stored_schedule>> find(self by, std::string name) {
    auto found = co_await desk::locate(by, name);
    std::optional<stored_schedule> out;
    if (found.stands()) out = std::move(found.there->value);
    co_return out;
  }

  /// A cursor is a shard, the queue there, and the cursor within.
  static answer<schedule_page> list(self by, std::uint32_t limit, std::string cursor) {
    if (limit == 0 || limit > limits::batch) throw desk::failure{errc::invalid_batch};
    auto place = place_of(cursor);
    if (!place) throw desk::failure{errc::invalid_option};
    schedule_page out;
    while (place->shard < by->shard_count()) {
      if (place->queue.empty()) {
        place->queue = co_await next_companion(by, place->shard, place->after);
        if (place->queue.empty()) {
          place = listing{place->shard + 1};
          continue;
        }
      }
      auto page = co_await desk::ask(
          by, command::list_jobs{.queue = place->queue,
                                 .state = place->leased ? job_state::leased : job_state::pending,
                                 .limit = limit,
                                 .cursor = place->cursor});
      for (auto const& j : page.jobs) {
        auto s = decode_record<stored_schedule>(j.payload);
        if (s && !s->ending) out.schedules.push_back(std::move(*s));
      }
      place->cursor = page.cursor;
      if (place->cursor.empty() && std::exchange(place->leased, !place->leased)) {
        place->after = std::exchange(place->queue, {});
      }
      if (!out.schedules.empty()) break;
    }
    if (place->shard < by->shard_count()) out.cursor = text_of(*place);
    co_return out;
  }

  /// One step decides: from then on its record says that it ends, and whoever finds it completes
  /// that, and a move that it is in.
  static answer<bool> remove(self by, std::string name) {
    std::string removed;  // of this generation; the next one is another schedule
    for (int tries = 0;; desk::again(tries)) {
      auto const outcome = co_await desk::outcome_of(desk::locate(by, name));
      if (outcome.has_error() && outcome.error() == errc::store_corrupt && removed.empty()) {
        if (co_await remove_unreadable(by, name)) co_return true;
        continue;
      }
      auto const& found = outcome.value();
      if (!found.there) co_return !removed.empty();
      auto const& there = *found.there;
      if (!removed.empty() && removed != there.value.generation) co_return true;
      if (there.value.ending) {
        co_await schedule_moves::finish(by, found);
        removed = there.value.generation;
        continue;
      }
      auto ending = there.value;
      ending.ending = true;
      ++ending.progress.steps;
      if (co_await desk::rewrite(by, there, ending, {})) removed = there.value.generation;
    }
  }

  /// False: there is no such schedule.
  static answer<bool> pause(self by, std::string name, bool paused) {
    for (int tries = 0;; desk::again(tries)) {
      auto found = co_await desk::locate(by, name);
      if (!found.stands()) co_return false;
      if (co_await schedule_moves::finish(by, found)) continue;
      auto const& there = *found.there;
      if (there.value.paused == paused) co_return true;
      auto changed = there.value;
      changed.paused = paused;
      if (!paused) changed.progress.last = std::max(changed.progress.last, by->date());
      auto const zone = zone_of(changed.definition).value();
      if (co_await schedule_moves::replace(by, there, std::move(changed), zone)) co_return true;
    }
  }

  static answer<std::optional<job_id>> trigger(self by, std::string name) {
    auto found = co_await desk::locate(by, name);
    std::optional<job_id> out;
    if (!found.stands()) co_return out;
    auto const& s = found.there->value;
    std::vector<ticking> jobs;
    if (!add_tick(jobs, s, by->date(), by->ids().job())) {
      throw desk::failure{errc::unencodable_payload};
    }
    auto const view = new_jobs_of(jobs, s.job.kind);
    co_await desk::ask(by, command::enqueue_jobs{s.job.queue, view});
    out = jobs.front().fields.id;
    co_return out;
  }

  /// The number of ticks whose jobs are there now; at most `most_ticks`.
  static answer<std::uint32_t> backfill(self by, std::string name, time_point from, time_point to) {
    auto found = co_await desk::locate(by, name);
    if (!found.stands()) co_return std::uint32_t{0};
    auto const& s = found.there->value;
    to = std::min(to, s.progress.last);  // what comes later is fired in its time
    auto const zone = zone_of(s.definition).value();
    timetable const table{s.definition, zone};
    std::vector<ticking> jobs;
    if (from != time_point::min()) from -= duration{1};
    for (auto t = table.next(from); t && *t <= to; t = table.next(*t)) {
      if (jobs.size() == most_ticks) throw desk::failure{errc::invalid_batch};
      if (!add_tick(jobs, s, *t, id_of_tick(s, *t))) {
        throw desk::failure{errc::unencodable_payload};
      }
    }
    if (jobs.empty()) co_return std::uint32_t{0};
    auto const view = new_jobs_of(jobs, s.job.kind);
    co_await desk::ask(by, command::enqueue_jobs{s.job.queue, view});
    co_return static_cast<std::uint32_t>(jobs.size());
  }

 private:
  /// How often a put looks at an unchanged place of another maker before it takes over.
  static constexpr int most_looks = 20;

  [[nodiscard]] static error_code problem(stored_schedule const& s) {
    if (auto const ec = validate(s.definition)) return ec;
    if (rule::holds_schedules(s.job.queue)) {
      return explained(errc::invalid_queue, "schedule: its job's queue is one of schedules");
    }
    if (s.job.payload.size() > limits::scheduled_payload_size) return errc::payload_too_large;
    auto const companion = companion_of(s.job.queue);
    std::vector<ticking> jobs;
    if (!add_tick(jobs, s, time_point{}, id_of_schedule(s.definition.name))) {
      return explained(errc::invalid_option, "schedule: the job has no text " +
                                                 s.definition.tick_member + " for its tick");
    }
    auto const view = new_jobs_of(jobs, s.job.kind);
    if (auto const ec = rule::validate(command::enqueue_jobs{s.job.queue, view})) return ec;
    auto const payload = read_or_none([&] { return std::optional{encode_record(s)}; });
    if (!payload) return errc::unencodable_payload;  // not UTF-8
    auto const itself = schedule_job(s, *payload, {});
    return rule::validate(command::enqueue_jobs{companion, std::span{&itself, 1}});
  }

  /// The first queue of schedules after this one, by name; empty: there is none.
  static answer<std::string> next_companion(self by, std::uint32_t shard, std::string after) {
    if (after.empty()) after = places_queue;
    auto const page =
        co_await desk::ask(by, command::list_queues{.shard = shard, .limit = 1, .cursor = after});
    if (page.queues.empty() || !page.queues.front().starts_with(companion_prefix)) {
      co_return std::string{};
    }
    co_return page.queues.front();
  }

  /// Removes what cannot be read, where the name leads to. False: there is no such thing any more.
  static answer<bool> remove_unreadable(self by, std::string name) {
    auto const id = id_of_schedule(name);
    auto const place = co_await desk::outcome_of(desk::place_of_name(by, name));
    std::string queue{places_queue};
    if (place.has_value() || place.error() != errc::store_corrupt) {
      if (!place.value()) co_return false;
      queue = companion_of((*place)->queue);
    }
    auto const found = co_await desk::ask(by, command::find_job{queue, id});
    if (!found || is_terminal(found->state)) co_return false;
    co_return co_await desk::end_job(by, queue, id, found->payload);
  }

  /// Where a list goes on.
  struct listing {
    std::uint32_t shard = 0;
    std::string after{};   ///< the last queue that is done with
    std::string queue{};   ///< the one that is being listed
    bool leased = false;   ///< first those that wait, then those that are being fired
    std::string cursor{};  ///< within it
  };
  [[nodiscard]] static std::string text_of(listing const& l) {
    auto const bytes = nlohmann::json::to_cbor({l.shard, l.after, l.queue, l.leased, l.cursor});
    return rule::cursor_text({reinterpret_cast<char const*>(bytes.data()), bytes.size()});
  }
  [[nodiscard]] static std::optional<listing> place_of(std::string_view cursor) {
    if (cursor.empty()) return listing{};
    constexpr std::size_t longest = 16U << 10U;
    auto const bytes = cursor.size() <= longest ? rule::cursor_bytes(cursor) : std::nullopt;
    if (!bytes) return std::nullopt;
    return read_or_none([&] {
      auto const j = form_of<nlohmann::json>(*bytes, binary_form::cbor);
      return std::optional{listing{j.at(0), j.at(1), j.at(2), j.at(3), j.at(4)}};
    });
  }
};

}  // namespace detail
}  // namespace weir

#endif
