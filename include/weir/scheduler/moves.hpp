// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_MOVES_HPP
#define WEIR_SCHEDULER_MOVES_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/schedule/any_zone.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/scheduler/booking.hpp"
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace weir::detail {

/// Makes schedules, moves them between queues and ends them: each in steps, any of which may be the
/// last of the process that takes it. Whoever finds a schedule between two of them completes it.
class schedule_moves {
  using desk = schedule_desk;
  using located = desk::located;
  using self = desk::self;
  template <class T>
  using answer = desk::answer<T>;

 public:
  /// How long a move that nobody completes waits until whoever fires schedules does.
  static constexpr duration move_patience = std::chrono::seconds{10};

  /// A schedule whose jobs have come to another queue takes over what the one there has done, which
  /// ends. True: this step did so, or there was nothing left to be done.
  static answer<bool> finish_move(self by, located found) {
    auto const& now_here = found.value;
    auto const here = companion_of(now_here.job.queue);
    auto old = co_await desk::at(by, now_here.moved_from, now_here.definition.name);
    // A late duplicate of the enqueue, or a schedule that has come back to that queue, is not the
    // one to take over: its number of moves differs, or its steps are behind.
    bool const is_over =
        !old || old->value.generation != now_here.generation ||
        old->value.moves + 1 != now_here.moves || !old->value.moved_from.empty() ||
        (!now_here.ending && old->value.progress.steps + 1 < now_here.progress.steps);
    auto moved = now_here;
    if (is_over) moved.moved_from.clear();
    if (now_here.ending) {  // what is left of it has no ticks, so its zone need not be known here
      if (is_over) co_return co_await desk::rewrite(by, found, moved, {});
      co_return co_await desk::drop(by, *old);
    }
    auto zone = zone_of(now_here.definition).value();
    if (!is_over) {
      if (old->value.progress.steps + 1 == now_here.progress.steps) {  // nothing done meanwhile
        co_return co_await desk::drop(by, *old);
      }
      auto const& was = old->value;
      if (was.changes + 1 > now_here.changes) {  // it was changed there since the move was begun
        moved.definition = was.definition;
        moved.job = was.job;
        moved.job.queue = now_here.job.queue;
        zone = zone_of(moved.definition).value();
      }
      inherit(moved, was, by->date());
      moved.changes = std::max(was.changes + 1, now_here.changes);
      moved.ending = was.ending;
    }
    timetable const table{moved.definition, zone};
    auto const now = by->date();
    book(moved, table, is_over ? now_here : old->value, now);
    ++moved.progress.steps;
    auto const payload = encode_record(moved);
    auto const delay = is_over ? delay_of(moved, table, now) : move_patience;
    auto const next = schedule_job(moved, payload, delay);
    co_return co_await desk::exchange(by, here, found.payload, next);
  }

  /// Relation of a schedule in a queue to the place that its name stands for.
  enum class standing : std::uint8_t {
    named,    ///< its name stands for it
    coming,   ///< it is to be moved here, and its name does not stand for it yet
    leaving,  ///< its name stands for the one in its next queue, which is going to take over
    stray,    ///< its name stands for another one, or for none: it has come too late
  };
  static answer<standing> standing_of(self by, stored_schedule s) {
    auto const& name = s.definition.name;
    schedule_place const own{s.job.queue, s.generation, s.moves, place_state::standing};
    for (int tries = 0;; desk::again(tries)) {
      auto const place = co_await desk::place_of_name(by, name);
      if (place == own) co_return standing::named;
      auto making = own;
      making.state = place_state::making;
      if (place != making) {
        bool const before =
            !s.moved_from.empty() &&
            place == schedule_place{s.moved_from, own.generation, own.moves - 1, own.state};
        if (before) co_return standing::coming;
        if (!place || place->moves != own.moves + 1) co_return standing::stray;
        auto const next = co_await desk::at(by, place->queue, name);
        bool const leaves =
            next && next->value.generation == own.generation && next->value.moved_from == own.queue;
        co_return leaves ? standing::leaving : standing::stray;
      }
      co_await desk::set_place(by, name, place, own);
    }
  }

  /// Takes a step towards the end of a move or a removal that was begun. False: there is none.
  static answer<bool> finish(self by, desk::lookup found) {
    auto const& there = *found.there;
    if (!there.value.moved_from.empty()) {
      co_await finish_move(by, there);
    } else if (there.value.ending) {
      co_await finish_removal(by, there);
    } else {
      co_return false;
    }
    co_return true;
  }

  /// Its name stands for nothing before it goes: what comes by its enqueue once more is a stray.
  static answer<bool> finish_removal(self by, located there) {
    auto const& name = there.value.definition.name;
    auto const place = co_await desk::place_of_name(by, name);
    bool const its_own =
        place && place->generation == there.value.generation && place->moves == there.value.moves;
    if (its_own && place->state != place_state::ended) {
      auto ended = *place;
      ended.state = place_state::ended;
      if (!co_await desk::set_place(by, name, place, ended)) co_return false;
    }
    co_return co_await desk::drop(by, there);
  }

  /// Makes a schedule whose name stands for none that is there. False: the name stands for another
  /// one by now.
  static answer<bool> create(self by, stored_schedule made, std::optional<schedule_place> before,
                             any_zone zone) {
    auto const now = by->date();
    timetable const table{made.definition, std::move(zone)};
    made.generation = by->ids().holder();
    made.progress = {};
    made.progress.last = now;
    book(made, table, made, now);
    schedule_place const place{made.job.queue, made.generation, 0, place_state::making};
    if (!co_await desk::set_place(by, made.definition.name, before, place)) co_return false;
    if (!co_await install(by, made, delay_of(made, table, now), place)) co_return false;
    co_return co_await standing_of(by, made) == standing::named;
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
    book(made, table, before, now);
    ++made.progress.steps;
    if (co_await standing_of(by, before) != standing::named) co_return false;
    schedule_place const from{before.job.queue, before.generation, before.moves,
                              place_state::standing};
    if (!co_await install(by, made, move_patience, from)) co_return false;
    schedule_place const to{made.job.queue, made.generation, made.moves, place_state::standing};
    co_return co_await desk::set_place(by, made.definition.name, from, to);
  }

  /// Puts a schedule's job into its queue, in the place of a stray one that may be there. False:
  /// others have changed what is there, or what the name stands for.
  ///
  /// @param place what it stands for: looked up after the one that is there, which is not that
  static answer<bool> install(self by, stored_schedule made, duration delay, schedule_place place) {
    auto const companion = companion_of(made.job.queue);
    auto const payload = encode_record(made);
    auto const itself = schedule_job(made, payload, delay);
    auto const there = co_await desk::at(by, made.job.queue, made.definition.name);
    if (there) {
      if (co_await desk::place_of_name(by, made.definition.name) != place) co_return false;
      co_return co_await desk::exchange(by, companion, there->payload, itself);
    }
    co_await desk::purge_dead(by, companion, itself.id);
    co_await desk::ask(by, command::enqueue_jobs{companion, std::span{&itself, 1}});
    auto const now = co_await desk::at(by, made.job.queue, made.definition.name);
    co_return now && now->value.generation == made.generation && now->value.moves == made.moves;
  }

  /// False: it has changed meanwhile.
  static answer<bool> replace(self by, located there, stored_schedule made, any_zone zone) {
    timetable const table{made.definition, std::move(zone)};
    auto const now = by->date();
    book(made, table, there.value, now);
    ++made.progress.steps;
    return desk::rewrite(std::move(by), std::move(there), made, delay_of(made, table, now));
  }
};

}  // namespace weir::detail

#endif
