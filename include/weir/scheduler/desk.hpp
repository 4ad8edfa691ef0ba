// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_DESK_HPP
#define WEIR_SCHEDULER_DESK_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/owned_command.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/rule/shards.hpp"
#include "weir/rule/validate.hpp"
#include "weir/schedule/any_zone.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/schedule/tzif_zone.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
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
  unchanged,   ///< the one that there was is the same: nothing was changed
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

/// A store as schedules use it.
using schedule_store =
    any_store<command::find_job, command::enqueue_jobs, command::relay_job, command::cancel_job,
              command::purge_job, command::list_jobs, command::list_queues>;

/// Does with schedules what takes more than one command. Each step compares and sets: whoever comes
/// too late looks again.
class schedule_desk {
 public:
  schedule_desk(schedule_store store, std::function<time_point()> date, id_source ids)
      : store_{std::move(store)},
        date_{std::move(date)},
        ids_{std::move(ids)} {}

  template <class T>
  using answer = boost::asio::awaitable<result<T>>;
  using self = std::shared_ptr<schedule_desk const>;

  [[nodiscard]] boost::asio::any_io_executor const& get_executor() const noexcept {
    return store_.get_executor();
  }
  [[nodiscard]] time_point date() const { return date_(); }
  [[nodiscard]] id_source const& ids() const noexcept { return ids_; }

  template <class C>
  [[nodiscard]] static answer<typename C::result> ask(self by, C const& c) {
    if (by->store_.executes_now()) co_return by->store_.execute(c);
    auto const kept = std::make_shared<owned_command<C>>(c);
    auto start = [by, kept](auto handler) { by->store_.start(kept->get(), std::move(handler)); };
    auto asked = attempt<typename C::result>(any_clock::of(system_clock{}), steady_time::max(),
                                             kept, std::move(start));
    co_return co_await std::move(asked);
  }

  // ---------------------------------------------------------------------------- what users ask for

  static answer<put_outcome> put(self by, stored_schedule wanted) {
    if (auto const ec = problem(wanted)) co_return ec;
    auto zone = zone_of(wanted.definition);
    if (zone.has_error()) co_return zone.error();
    auto same = put_outcome::unchanged;
    for (int tries = 0; tries != most_tries; ++tries) {
      auto found = co_await locate(by, wanted.definition.name);
      if (found.has_error()) co_return found.error();
      if (!found->there) {
        auto const made = co_await create(by, wanted, found->place, *zone);
        if (made.has_error()) co_return made.error();
        if (*made) co_return put_outcome::created;
        continue;
      }
      auto& there = *found->there;
      auto const pending = co_await finish(by, *found);
      if (pending.has_error()) co_return pending.error();
      if (*pending) continue;
      if (there.value.definition.version > wanted.definition.version) {
        co_return put_outcome::kept_newer;
      }
      if (there.value.definition == wanted.definition && there.value.job == wanted.job) {
        co_return same;
      }
      if (there.value.job.queue != wanted.job.queue) {
        auto const begun = co_await move(by, wanted, there.value, *zone);
        if (begun.has_error()) co_return begun.error();
        if (*begun) same = put_outcome::changed;
        continue;  // it is found where it is now, and the move is completed
      }
      auto changed = wanted;
      changed.moves = there.value.moves;
      inherit(changed, there.value, by->date());
      ++changed.changes;
      auto const done = co_await replace(by, there, std::move(changed), *zone);
      if (done.has_error()) co_return done.error();
      if (*done) co_return put_outcome::changed;
    }
    co_return make_error_code(errc::store_unavailable);
  }

  static answer<std::optional<stored_schedule>> find(self by, std::string name) {
    auto found = co_await locate(by, name);
    if (found.has_error()) co_return found.error();
    std::optional<stored_schedule> out;
    if (found->stands()) out = std::move(found->there->value);
    co_return out;
  }

  /// A cursor is a shard, the queue there, and the cursor within.
  static answer<schedule_page> list(self by, std::string cursor) {
    auto place = place_of(cursor);
    if (!place) co_return make_error_code(errc::invalid_option);
    schedule_page out;
    while (place->shard < by->store_.shard_count()) {
      if (place->queue.empty()) {
        auto const next = co_await next_companion(by, place->shard, place->after);
        if (next.has_error()) co_return next.error();
        if (next->empty()) {
          place = listing{place->shard + 1};
          continue;
        }
        place->queue = *next;
      }
      auto page = co_await ask(
          by, command::list_jobs{.queue = place->queue,
                                 .state = place->leased ? job_state::leased : job_state::pending,
                                 .cursor = place->cursor});
      if (page.has_error()) co_return page.error();
      for (auto const& j : page->jobs) {
        auto s = decode_schedule(j.payload);
        if (s && !s->ending) out.schedules.push_back(std::move(*s));
      }
      place->cursor = page->cursor;
      if (place->cursor.empty() && std::exchange(place->leased, !place->leased)) {
        place->after = std::exchange(place->queue, {});
      }
      if (!out.schedules.empty()) break;
    }
    if (place->shard < by->store_.shard_count()) out.cursor = text_of(*place);
    co_return out;
  }

  /// One step decides: from then on its record says that it ends, and whoever finds it completes
  /// that.
  static answer<bool> remove(self by, std::string name) {
    std::string removed;  // of this generation; the next one is another schedule
    for (int tries = 0; tries != most_tries; ++tries) {
      auto found = co_await locate(by, name);
      if (found.has_error() && found.error() == errc::store_corrupt && removed.empty()) {
        auto const gone = co_await remove_unreadable(by, name);
        if (gone.has_error()) co_return gone.error();
        if (*gone) co_return true;
        continue;
      }
      if (found.has_error()) co_return found.error();
      if (!found->there) co_return !removed.empty();
      auto const& there = *found->there;
      if (!removed.empty() && removed != there.value.generation) co_return true;
      auto const pending = co_await finish(by, *found);
      if (pending.has_error()) co_return pending.error();
      if (*pending) {
        if (there.value.ending) removed = there.value.generation;
        continue;
      }
      auto ending = there.value;
      ending.ending = true;
      ++ending.progress.steps;
      auto const done = co_await rewrite(by, there, ending, {});
      if (done.has_error()) co_return done.error();
      if (*done) removed = there.value.generation;
    }
    co_return make_error_code(errc::store_unavailable);
  }

  /// False: there is no such schedule.
  static answer<bool> pause(self by, std::string name, bool paused) {
    for (int tries = 0; tries != most_tries; ++tries) {
      auto found = co_await locate(by, name);
      if (found.has_error()) co_return found.error();
      if (!found->stands()) co_return false;
      auto const pending = co_await finish(by, *found);
      if (pending.has_error()) co_return pending.error();
      if (*pending) continue;
      auto const& there = *found->there;
      if (there.value.paused == paused) co_return true;
      auto changed = there.value;
      changed.paused = paused;
      if (!paused) changed.progress.last = std::max(changed.progress.last, by->date());
      auto zone = zone_of(changed.definition);
      if (zone.has_error()) co_return zone.error();
      auto const done = co_await replace(by, there, std::move(changed), *zone);
      if (done.has_error()) co_return done.error();
      if (*done) co_return true;
    }
    co_return make_error_code(errc::store_unavailable);
  }

  static answer<std::optional<job_id>> trigger(self by, std::string name) {
    auto found = co_await locate(by, name);
    if (found.has_error()) co_return found.error();
    std::optional<job_id> out;
    if (!found->stands()) co_return out;
    auto const& s = found->there->value;
    std::vector<ticking> jobs;
    if (!add_tick(jobs, s, by->date(), by->ids_.job())) {
      co_return make_error_code(errc::unencodable_payload);
    }
    auto const view = views(jobs, s.job.kind);
    auto const done = co_await ask(by, command::enqueue_jobs{s.job.queue, view});
    if (done.has_error()) co_return done.error();
    out = jobs.front().fields.id;
    co_return out;
  }

  /// The number of ticks whose jobs are there now; at most `most_ticks`.
  static answer<std::uint32_t> backfill(self by, std::string name, time_point from, time_point to) {
    auto found = co_await locate(by, name);
    if (found.has_error()) co_return found.error();
    if (!found->stands()) co_return std::uint32_t{0};
    auto const& s = found->there->value;
    to = std::min(to, s.progress.last);  // what comes later is fired in its time
    auto zone = zone_of(s.definition);
    if (zone.has_error()) co_return zone.error();
    timetable const table{s.definition, *zone};
    std::vector<ticking> jobs;
    if (from != time_point::min()) from -= duration{1};
    for (auto t = table.next(from); t && *t <= to; t = table.next(*t)) {
      if (jobs.size() == most_ticks) co_return make_error_code(errc::invalid_batch);
      if (!add_tick(jobs, s, *t, id_of_tick(s, *t))) {
        co_return make_error_code(errc::unencodable_payload);
      }
    }
    if (jobs.empty()) co_return std::uint32_t{0};
    auto const view = views(jobs, s.job.kind);
    auto const done = co_await ask(by, command::enqueue_jobs{s.job.queue, view});
    if (done.has_error()) co_return done.error();
    co_return static_cast<std::uint32_t>(jobs.size());
  }

  // ------------------------------------------------------------------------------- what firing
  // asks

  /// A job that is to be enqueued for a tick, with its texts.
  struct ticking {
    new_job fields;
    std::string payload;
    std::string key;
  };
  /// False: its tick cannot be written into its payload.
  [[nodiscard]] static bool add_tick(std::vector<ticking>& to, stored_schedule const& s,
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
  [[nodiscard]] static std::vector<new_job> views(std::vector<ticking> const& of,
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

  /// How long a move that nobody completes waits until whoever fires schedules does.
  static constexpr duration move_patience = std::chrono::seconds{10};

  /// A schedule where it is.
  struct located {
    stored_schedule value;
    std::string payload;  ///< as it is in the store
  };

  /// Where a name is, and the schedule that it stands for, if that is there.
  struct lookup {
    std::optional<schedule_place> place{};
    std::optional<located> there{};

    [[nodiscard]] bool stands() const noexcept { return there && !there->value.ending; }
  };

  /// What a schedule waits for: its next tick, or for ever.
  [[nodiscard]] static duration delay_of(stored_schedule const& s, timetable const& table,
                                         time_point now) {
    if (s.paused || !s.progress.next) return limits::span;
    return std::clamp(saturating_sub(table.fired_at(*s.progress.next), now), duration::zero(),
                      limits::span);
  }

  /// The job that is the schedule; `payload` is what it views.
  [[nodiscard]] static new_job job_of(stored_schedule const& s, std::string_view payload,
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
  [[nodiscard]] static result<any_zone> zone_of(schedule const& s) {
    auto const* const c = std::get_if<cron>(&s.when);
    if (c == nullptr) return any_zone{};
    auto zone = any_zone::load(c->zone);
    if (zone.has_value()) return *std::move(zone);
    return explained(errc::invalid_option, "schedule: the time zone " + c->zone +
                                               " cannot be loaded here: " + zone.error().message());
  }

  /// The release of the zone data by which its ticks are computed here; empty: by none.
  [[nodiscard]] static std::string zone_data_of(schedule const& s) {
    return std::holds_alternative<cron>(s.when) ? tzif_zone::release() : std::string{};
  }

  /// A schedule whose jobs have come to another queue takes over what the one there has done, which
  /// ends. True: this step did so, or there was nothing left to be done.
  static answer<bool> finish_move(self by, located found) {
    auto const& now_here = found.value;
    auto const here = companion_of(now_here.job.queue);
    auto old = co_await at(by, now_here.moved_from, now_here.definition.name);
    if (old.has_error()) co_return old.error();
    auto zone = zone_of(now_here.definition);
    if (zone.has_error()) co_return zone.error();
    // What comes by the enqueue of a schedule that has left is not that one, nor is one that has
    // come back there meanwhile. They have other moves, or are behind what was taken over.
    bool const is_over = !*old || (*old)->value.generation != now_here.generation ||
                         (*old)->value.moves + 1 != now_here.moves ||
                         !(*old)->value.moved_from.empty() ||
                         (*old)->value.progress.steps + 1 < now_here.progress.steps;
    auto moved = now_here;
    if (is_over) {
      moved.moved_from.clear();
    } else {
      if ((*old)->value.progress.steps + 1 == now_here.progress.steps) {  // nothing done meanwhile
        auto const ended = co_await drop(by, **old);
        co_return ended;
      }
      auto const& was = (*old)->value;
      if (was.changes + 1 > now_here.changes) {  // it was changed there since the move was begun
        moved.definition = was.definition;
        moved.job = was.job;
        moved.job.queue = now_here.job.queue;
        zone = zone_of(moved.definition);
        if (zone.has_error()) co_return zone.error();
      }
      inherit(moved, was, by->date());
      moved.changes = std::max(was.changes + 1, now_here.changes);
      moved.ending = was.ending;
    }
    timetable const table{moved.definition, *zone};
    book(moved, table, is_over ? now_here : (*old)->value);
    ++moved.progress.steps;
    auto const payload = encode_schedule(moved);
    auto const delay = is_over ? delay_of(moved, table, by->date()) : move_patience;
    auto const next = job_of(moved, payload, delay);
    auto const done = co_await exchange(by, here, found.payload, next);
    co_return done;
  }

  /// What a schedule is that is found in a queue.
  enum class standing : std::uint8_t {
    named,    ///< its name stands for it
    coming,   ///< it is to be moved here, and its name does not stand for it yet
    leaving,  ///< its name stands for the one in its next queue, which is going to take over
    stray,    ///< its name stands for another one, or for none: it has come too late
  };
  static answer<standing> standing_of(self by, stored_schedule s) {
    auto const& name = s.definition.name;
    schedule_place const own{s.job.queue, s.generation, s.moves, place_state::standing};
    for (int tries = 0; tries != most_tries; ++tries) {
      auto const place = co_await place_of_name(by, name);
      if (place.has_error()) co_return place.error();
      if (*place == own) co_return standing::named;
      auto making = own;
      making.state = place_state::making;
      if (*place != making) {
        bool const before =
            !s.moved_from.empty() &&
            *place == schedule_place{s.moved_from, own.generation, own.moves - 1, own.state};
        if (before) co_return standing::coming;
        if (!*place || (*place)->moves != own.moves + 1) co_return standing::stray;
        auto const next = co_await at(by, (*place)->queue, name);
        if (next.has_error()) co_return next.error();
        bool const leaves = *next && (*next)->value.generation == own.generation &&
                            (*next)->value.moved_from == own.queue;
        co_return leaves ? standing::leaving : standing::stray;
      }
      auto const taken = co_await set_place(by, name, *place, own);
      if (taken.has_error()) co_return taken.error();
    }
    co_return make_error_code(errc::store_unavailable);
  }

  /// Takes a step towards the end of a move or a removal that was begun. False: there is none.
  static answer<bool> finish(self by, lookup found) {
    auto const& there = *found.there;
    if (!there.value.moved_from.empty()) {
      auto const moved = co_await finish_move(by, there);
      if (moved.has_error()) co_return moved.error();
      co_return true;
    }
    if (!there.value.ending) co_return false;
    auto const ended = co_await finish_removal(by, there);
    if (ended.has_error()) co_return ended.error();
    co_return true;
  }

  /// Its name stands for nothing before it goes: what comes by its enqueue once more is a stray.
  static answer<bool> finish_removal(self by, located there) {
    auto const& name = there.value.definition.name;
    auto const place = co_await place_of_name(by, name);
    if (place.has_error()) co_return place.error();
    bool const its_own = *place && (*place)->generation == there.value.generation &&
                         (*place)->moves == there.value.moves;
    if (its_own && (*place)->state != place_state::ended) {
      auto ended = **place;
      ended.state = place_state::ended;
      auto const set = co_await set_place(by, name, *place, ended);
      if (set.has_error() || !*set) co_return set;
    }
    auto const done = co_await drop(by, there);
    co_return done;
  }

  /// Ends one. False: it has changed meanwhile.
  static answer<bool> drop(self by, located there) {
    auto const done = co_await end_job(by, companion_of(there.value.job.queue),
                                       id_of_schedule(there.value.definition.name), there.payload);
    co_return done;
  }

 private:
  static constexpr int most_tries = 100;

  [[nodiscard]] static error_code problem(stored_schedule const& s) {
    if (auto const ec = validate(s.definition)) return ec;
    if (rule::holds_schedules(s.job.queue)) {
      return explained(errc::invalid_queue, "schedule: its job's queue is one of schedules");
    }
    if (s.job.payload.size() > limits::scheduled_payload_size) return errc::payload_too_large;
    auto const companion = companion_of(s.job.queue);
    std::vector<ticking> jobs;
    if (!add_tick(jobs, s, time_point{}, id_of_schedule(s.definition.name))) {
      return explained(errc::invalid_option, "schedule: the job has no member " +
                                                 s.definition.tick_member + " for its tick");
    }
    auto const view = views(jobs, s.job.kind);
    if (auto const ec = rule::validate(command::enqueue_jobs{s.job.queue, view})) return ec;
    try {
      auto const payload = encode_schedule(s);
      auto const itself = job_of(s, payload, {});
      return rule::validate(command::enqueue_jobs{companion, std::span{&itself, 1}});
    } catch (std::bad_alloc const&) {
      throw;
    } catch (std::exception const&) {  // not UTF-8
      return errc::unencodable_payload;
    }
  }

  /// The schedule of this name among those of a queue. Error: `store_corrupt`.
  static answer<std::optional<located>> at(self by, std::string queue, std::string name) {
    auto const companion = companion_of(queue);
    auto const found = co_await ask(by, command::find_job{companion, id_of_schedule(name)});
    if (found.has_error()) co_return found.error();
    std::optional<located> out;
    if (!*found || is_terminal((*found)->state)) co_return out;
    auto s = decode_schedule((*found)->payload);
    if (!s || s->definition.name != name) co_return make_error_code(errc::store_corrupt);
    out.emplace(std::move(*s), (*found)->payload);
    co_return out;
  }

  /// Error: `store_corrupt`.
  static answer<std::optional<schedule_place>> place_of_name(self by, std::string name) {
    auto const found = co_await ask(by, command::find_job{places_queue, id_of_schedule(name)});
    if (found.has_error()) co_return found.error();
    std::optional<schedule_place> out;
    if (!*found || is_terminal((*found)->state)) co_return out;
    out = decode_place((*found)->payload);
    if (!out) co_return make_error_code(errc::store_corrupt);
    co_return out;
  }

  /// Compares and sets. False: it is another one by now.
  static answer<bool> set_place(self by, std::string name, std::optional<schedule_place> before,
                                schedule_place after) {
    auto const payload = encode_place(after);
    new_job job;
    job.id = id_of_schedule(name);
    job.kind = place_kind;
    job.payload = payload;
    job.delay = after.state == place_state::ended ? std::chrono::hours{24} : limits::span;
    job.max_attempts = limits::attempts;
    if (!before) {
      auto const clear = co_await purge_dead(by, std::string{places_queue}, job.id);
      if (clear.has_error()) co_return clear.error();
      auto const made = co_await ask(by, command::enqueue_jobs{places_queue, std::span{&job, 1}});
      if (made.has_error()) co_return made.error();
      auto const now = co_await place_of_name(by, name);
      if (now.has_error()) co_return now.error();
      co_return *now == after;
    }
    auto const done = co_await exchange(by, std::string{places_queue}, encode_place(*before), job);
    co_return done;
  }

  /// Puts a job in the place of the one of its id, if that has this payload. False: it has another.
  static answer<bool> exchange(self by, std::string queue, std::string expected, new_job next) {
    auto const done = co_await ask(
        by, command::relay_job{
                .queue = queue, .id = next.id, .expected = expected, .next = std::span{&next, 1}});
    if (done.has_error()) co_return done.error();
    co_return done->outcome == relay_outcome::relayed;
  }
  /// Ends a job, if it has this payload. False: it has another.
  static answer<bool> end_job(self by, std::string queue, job_id id, std::string expected) {
    auto const done =
        co_await ask(by, command::relay_job{.queue = queue, .id = id, .expected = expected});
    if (done.has_error()) co_return done.error();
    co_return done->outcome == relay_outcome::relayed;
  }

  static answer<lookup> locate(self by, std::string name) {
    lookup out;
    auto place = co_await place_of_name(by, name);
    if (place.has_error()) co_return place.error();
    out.place = std::move(*place);
    if (!out.place) co_return out;
    auto here = co_await at(by, out.place->queue, name);
    if (here.has_error()) co_return here.error();
    bool const named = *here && (*here)->value.generation == out.place->generation &&
                       (*here)->value.moves == out.place->moves;
    if (named) out.there = std::move(*here);
    co_return out;
  }

  /// The first queue of schedules after this one, by name; empty: there is none.
  static answer<std::string> next_companion(self by, std::uint32_t shard, std::string after) {
    if (after.empty()) after = places_queue;
    auto const page =
        co_await ask(by, command::list_queues{.shard = shard, .limit = 1, .cursor = after});
    if (page.has_error()) co_return page.error();
    if (page->queues.empty() || !page->queues.front().starts_with(companion_prefix)) {
      co_return std::string{};
    }
    co_return page->queues.front();
  }

  /// Makes a schedule whose name stands for none that is there. False: the name stands for another
  /// one by now.
  static answer<bool> create(self by, stored_schedule made, std::optional<schedule_place> before,
                             any_zone zone) {
    auto const now = by->date();
    timetable const table{made.definition, std::move(zone)};
    made.generation = by->ids_.holder();
    made.progress = {};
    made.progress.last = now;
    book(made, table, made);
    schedule_place const place{made.job.queue, made.generation, 0, place_state::making};
    auto const placed = co_await set_place(by, made.definition.name, before, place);
    if (placed.has_error() || !*placed) co_return placed;
    auto const there = co_await install(by, made, delay_of(made, table, now), place);
    if (there.has_error() || !*there) co_return there;
    auto const stands = co_await standing_of(by, made);
    if (stands.has_error()) co_return stands.error();
    co_return *stands == standing::named;
  }

  /// Begins a move: the schedule is made in its new queue, waits there, and its name stands for it.
  static answer<bool> move(self by, stored_schedule made, stored_schedule before, any_zone zone) {
    auto const now = by->date();
    timetable const table{made.definition, std::move(zone)};
    inherit(made, before, now);
    made.moves = before.moves + 1;
    made.confirmed = true;
    made.moved_from = before.job.queue;
    made.changes = before.changes + 1;
    book(made, table, before);
    ++made.progress.steps;
    auto const stands = co_await standing_of(by, before);
    if (stands.has_error()) co_return stands.error();
    if (*stands != standing::named) co_return false;
    schedule_place const from{before.job.queue, before.generation, before.moves,
                              place_state::standing};
    auto const there = co_await install(by, made, move_patience, from);
    if (there.has_error() || !*there) co_return there;
    schedule_place const to{made.job.queue, made.generation, made.moves, place_state::standing};
    auto const set = co_await set_place(by, made.definition.name, from, to);
    co_return set;
  }

  /// Puts a schedule's job into its queue, in the place of a stray one that may be there. False:
  /// others have changed what is there, or what the name stands for.
  ///
  /// @param place what it stands for: looked up after the one that is there, which is not that
  static answer<bool> install(self by, stored_schedule made, duration delay, schedule_place place) {
    auto const companion = companion_of(made.job.queue);
    auto const payload = encode_schedule(made);
    auto const itself = job_of(made, payload, delay);
    auto const there = co_await at(by, made.job.queue, made.definition.name);
    if (there.has_error()) co_return there.error();
    if (*there) {
      auto const now = co_await place_of_name(by, made.definition.name);
      if (now.has_error()) co_return now.error();
      if (*now != place) co_return false;
      auto const done = co_await exchange(by, companion, (*there)->payload, itself);
      co_return done;
    }
    auto const clear = co_await purge_dead(by, companion, itself.id);
    if (clear.has_error()) co_return clear.error();
    auto const done = co_await ask(by, command::enqueue_jobs{companion, std::span{&itself, 1}});
    if (done.has_error()) co_return done.error();
    auto const now = co_await at(by, made.job.queue, made.definition.name);
    if (now.has_error()) co_return now.error();
    co_return *now && (*now)->value.generation == made.generation &&
        (*now)->value.moves == made.moves;
  }

  /// What a definition that takes the place of another goes on with: its ticks count from the
  /// change, unless they are the same.
  static void inherit(stored_schedule& made, stored_schedule const& before, time_point now) {
    auto const& was = before.definition;
    auto const& is = made.definition;
    bool const same = was.when == is.when && was.start == is.start && was.end == is.end &&
                      was.jitter == is.jitter;
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
  static void book(stored_schedule& made, timetable const& table, stored_schedule const& before) {
    auto const was = before.progress;
    made.progress.next = table.next(made.progress.last);
    made.progress.zone_data = zone_data_of(made.definition);
    bool const on_a_calendar = std::holds_alternative<cron>(made.definition.when);
    if (!on_a_calendar || made.progress.zone_data >= was.zone_data) return;
    made.progress.zone_data = was.zone_data;
    if (was.next && (!made.progress.next || *was.next < *made.progress.next)) {
      made.progress.next = was.next;
    }
  }

  /// False: it has changed meanwhile.
  static answer<bool> replace(self by, located there, stored_schedule made, any_zone zone) {
    timetable const table{made.definition, std::move(zone)};
    book(made, table, there.value);
    ++made.progress.steps;
    auto const done = co_await rewrite(by, there, made, delay_of(made, table, by->date()));
    co_return done;
  }
  static answer<bool> rewrite(self by, located there, stored_schedule made, duration delay) {
    auto const companion = companion_of(made.job.queue);
    auto const payload = encode_schedule(made);
    auto const next = job_of(made, payload, delay);
    auto const done = co_await exchange(by, companion, there.payload, next);
    co_return done;
  }

  /// Removes what cannot be read, where the name leads to. False: there is no such thing any more.
  static answer<bool> remove_unreadable(self by, std::string name) {
    auto const id = id_of_schedule(name);
    auto const place = co_await place_of_name(by, name);
    std::string queue{places_queue};
    if (place.has_value()) {
      if (!*place) co_return false;
      queue = companion_of((*place)->queue);
    } else if (place.error() != errc::store_corrupt) {
      co_return place.error();
    }
    auto const found = co_await ask(by, command::find_job{queue, id});
    if (found.has_error()) co_return found.error();
    if (!*found || is_terminal((*found)->state)) co_return false;
    auto const done = co_await end_job(by, queue, id, (*found)->payload);
    co_return done;
  }

  /// A dead letter of this id would be taken for the job itself.
  static answer<bool> purge_dead(self by, std::string queue, job_id id) {
    auto const found = co_await ask(by, command::find_job{queue, id});
    if (found.has_error()) co_return found.error();
    if (!*found || !is_terminal((*found)->state)) co_return false;
    auto const purged = co_await ask(by, command::purge_job{queue, id});
    co_return purged;
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
    return nlohmann::json{l.shard, l.after, l.queue, l.leased, l.cursor}.dump();
  }
  [[nodiscard]] static std::optional<listing> place_of(std::string_view cursor) {
    if (cursor.empty()) return listing{};
    try {
      auto const j = nlohmann::json::parse(cursor);
      return listing{j.at(0), j.at(1), j.at(2), j.at(3), j.at(4)};
    } catch (std::bad_alloc const&) {
      throw;
    } catch (std::exception const&) {
      return std::nullopt;
    }
  }

  schedule_store store_;
  std::function<time_point()> date_;
  id_source ids_;
};

}  // namespace detail
}  // namespace weir

#endif
