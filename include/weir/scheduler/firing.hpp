// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_FIRING_HPP
#define WEIR_SCHEDULER_FIRING_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/succession.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_context.hpp"
#include "weir/limits.hpp"
#include "weir/log.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/schedule/tzif_zone.hpp"
#include "weir/schedule_event.hpp"
#include "weir/scheduler/booking.hpp"
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/moves.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"
#include "weir/worker/handler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

namespace detail {

/// Whom the firings of a scheduler are told to.
class schedule_audience {
 public:
  void set(schedule_observer observer) { observer_ = std::move(observer); }
  void tell(schedule_event const& e) noexcept {
    if (!observer_) return;
    try {
      std::lock_guard const lock{mutex_};
      observer_(e);
    } catch (...) {
      tell_failure_of("scheduler: its observer", std::current_exception());
    }
  }

 private:
  std::mutex mutex_;
  schedule_observer observer_;
};

inline void tell_of_schedule(std::string const& what) {
  tell_log(log::level::warning, log::topic::job, "scheduler: " + what);
}

/// A job that is put off, and why, in place of what it may be.
class put_off_job final : public prepared_job {
 public:
  put_off_job(duration by, std::string why) : by_{by}, why_{std::move(why)} {}

  boost::asio::awaitable<handler_result> run(job_context& context) override {
    co_return call(context);
  }
  handler_result call(job_context& context) override {
    if (!why_.empty()) {
      tell_of_schedule(why_ + ", in queue " + std::string{context.queue()} + ": " +
                       boost::uuids::to_string(context.id()));
    }
    throw snooze_for{by_};
  }

 private:
  duration by_;
  std::string why_;
};

/// The place of a schedule that has ended goes when it vests.
class forgotten_place final : public prepared_job {
 public:
  boost::asio::awaitable<handler_result> run(job_context&) override { co_return handler_result{}; }
  handler_result call(job_context&) override { return {}; }
};

/// Fires the ticks of a schedule that have come.
class schedule_run final : public prepared_job {
 public:
  schedule_run(schedule_desk::self desk, schedule_audience& audience, schedule_desk::located found)
      : desk_{std::move(desk)},
        audience_{audience},
        found_{std::move(found)},
        schedule_{found_.value} {}

  boost::asio::awaitable<handler_result> run(job_context& context) override {
    try {
      co_return co_await fire(context);
    } catch (boost::system::system_error const& e) {
      if (e.code() == boost::asio::error::operation_aborted) throw;
      tell_of_schedule("the schedule " + schedule_.definition.name +
                       " is not fired: " + e.code().message());
      throw;
    }
  }

  handler_result call(job_context&) override { return {}; }

 private:
  boost::asio::awaitable<handler_result> fire(job_context& context) {
    auto& s = schedule_;
    if (s.ending && s.moved_from.empty()) {
      co_await schedule_moves::finish_removal(desk_, found_);
      throw snooze_for{std::chrono::seconds{1}};  // unless it is gone
    }
    if (!s.confirmed || !s.moved_from.empty()) {
      auto const stands = co_await schedule_moves::standing_of(desk_, s);
      if (stands == schedule_moves::standing::stray) {
        co_await schedule_desk::drop(desk_, found_);
        throw snooze_for{std::chrono::seconds{1}};  // unless it is gone
      }
      if (stands == schedule_moves::standing::coming) throw snooze_for{std::chrono::minutes{1}};
      if (stands == schedule_moves::standing::leaving) throw snooze_for{std::chrono::seconds{1}};
      s.confirmed = true;
    }
    if (!s.moved_from.empty()) {
      co_await schedule_moves::finish_move(desk_, found_);
      throw snooze_for{std::chrono::seconds{1}};  // unless it is another lease's by now
    }
    auto zone = zone_of(s.definition);
    if (zone.has_error()) {
      tell_of_schedule("the schedule " + s.definition.name +
                       " is left to others: " + zone.error().message());
      throw snooze_for{std::chrono::seconds{10}};
    }
    timetable const table{s.definition, *zone};
    auto const now = desk_->date();
    leave_to_better_dates(context, table, now);
    auto const release = zone_data_of(s.definition);
    bool const is_older = needs_zone_data(s.definition) && release < s.progress.zone_data;
    if (is_older) leave_to_newer_zone_data(table, now, release);
    auto due = s.paused ? due_ticks{{}, 0, s.progress.last, s.progress.next}
                        : ticks_due(s.definition, table, s.progress.last, now);
    bool const fires_any = due.last != s.progress.last;
    if (is_older && fires_any && s.progress.next && due.last < *s.progress.next) {
      due.last = *s.progress.next;  // those who booked it are not to fire it, too
      due.next = table.next(due.last);
    }
    schedule_event event{.name = s.definition.name, .missed = due.missed};
    std::vector<ticking> jobs;
    std::size_t bytes = 0;
    for (auto const t : due.fire) {
      if (s.definition.overlap == overlap_policy::replace && t != due.fire.back()) {
        ++event.skipped;  // nobody has heard of it when the last one takes its place
        continue;
      }
      if (!co_await clear_the_way(!jobs.empty(), event)) {
        ++event.skipped;
        continue;
      }
      if (!add_tick(jobs, s, t, id_of_tick(s, t))) {
        throw give_up{"its job has no text " + s.definition.tick_member + " for its tick"};
      }
      s.progress.job_before = std::exchange(s.progress.last_job, jobs.back().fields.id);
      s.progress.last_queue = s.job.queue;
      event.lateness = saturating_sub(now, table.fired_at(t));
      bytes += jobs.back().payload.size() + s.job.kind.size();
      if (bytes > most_bytes) {  // the rest comes in another step
        due.last = t;
        due.next = table.next(t);
        break;
      }
    }
    event.fired = static_cast<std::uint32_t>(jobs.size());
    s.progress.last = due.last;
    s.progress.next = due.next;
    s.progress.fired += event.fired;
    s.progress.skipped += event.skipped;
    s.progress.missed += event.missed;
    s.progress.zone_data = release;
    s.progress.booked = now;
    ++s.progress.steps;
    if (event.missed != 0) {
      tell_of_schedule("the schedule " + s.definition.name + ": " + std::to_string(event.missed) +
                       " of its ticks came too late, and are not fired");
    }
    if (event.unserved) {
      tell_of_schedule("the schedule " + s.definition.name +
                       " skips ticks: nobody claims the job of its last " + "one, in queue " +
                       s.job.queue);
    }
    if (event.fired != 0 || event.skipped != 0 || event.missed != 0) audience_.tell(event);
    context.succeed(std::make_shared<succession const>(succession_of(table, jobs, now)));
    co_return handler_result{};
  }

  /// Store and date should agree about how long ago the next tick was booked. A date that is behind
  /// would put the schedule off for others, for decades after a start in 1970, and one that is
  /// ahead would book ticks that have not come. So it is left to others, for longer each time; one
  /// that seems to be ahead is believed in the end, since that of the host that booked may be the
  /// wrong one.
  void leave_to_better_dates(job_context& context, timetable const& table, time_point now) const {
    auto const& p = schedule_.progress;
    constexpr duration minute = std::chrono::minutes{1};
    constexpr std::uint32_t most_doubts = 5;
    // A delay ends after `limits::span` at the latest.
    if (schedule_.paused || !p.next || context.age() >= limits::span) return;
    auto const left = saturating_sub(table.fired_at(*p.next), now);
    auto const passed = saturating_sub(now, p.booked);
    // Not all snoozes are of doubts: hosts without its zone's data snooze it, too.
    auto const noted = context.last_checkpoint();
    std::uint32_t ahead = 0;
    std::uint32_t behind = 0;
    auto const* const end = noted.data() + noted.size();
    auto const* const space = std::from_chars(noted.data(), end, ahead).ptr;
    if (space != end) std::from_chars(space + 1, end, behind);
    bool const is_ahead = passed > context.age() + 5 * minute && ahead < most_doubts;
    if (left <= minute && !is_ahead) return;
    auto const in_seconds = [](duration d) {
      return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s";
    };
    tell_of_schedule("the schedule " + schedule_.definition.name + " was booked " +
                     in_seconds(context.age()) + " ago by the store's time, and " +
                     in_seconds(passed) + " ago by this host's date: is that right?");
    auto& doubts = is_ahead ? ahead : behind;
    doubts = std::min(doubts, 10'000U) + 1;
    auto const wait = minute * doubts;
    context.checkpoint(std::to_string(ahead) + ' ' + std::to_string(behind));
    throw snooze_for{is_ahead ? wait : std::min(left, wait)};
  }

  /// Those who have the zone data by which the next tick was booked know better when it comes. If
  /// none of them comes, as after an update that was taken back, older data have to do.
  void leave_to_newer_zone_data(timetable const& table, time_point now,
                                std::string const& release) const {
    auto const& s = schedule_;
    auto const told = "the schedule " + s.definition.name + " is ";
    auto const booked = "its next tick is of the time zone database " + s.progress.zone_data;
    constexpr duration patience = std::chrono::minutes{10};
    if (s.paused || !s.progress.next ||
        now < saturating_add(table.fired_at(*s.progress.next), patience)) {
      tell_of_schedule(told + "left to others: " + booked + ", and this host has " + release);
      throw snooze_for{std::chrono::seconds{10}};
    }
    tell_of_schedule(told + "fired by the time zone database " + release + ": " + booked +
                     ", and nobody who has that came for it");
  }

  /// A step's jobs and the schedule itself fit into one message of any engine.
  static constexpr std::size_t most_bytes = 2 * limits::scheduled_payload_size;

  /// May a tick be fired, as far as the job before it goes?
  ///
  /// @param in_this_step that one is fired in this step, too
  boost::asio::awaitable<bool> clear_the_way(bool in_this_step, schedule_event& event) {
    auto const policy = schedule_.definition.overlap;
    if (policy == overlap_policy::allow) co_return true;
    if (in_this_step) co_return policy == overlap_policy::replace;
    auto const& p = schedule_.progress;
    auto const last = co_await unfinished(p.last_job);
    if (!last) co_return true;
    if (policy == overlap_policy::replace) {
      co_await schedule_desk::ask(
          desk_, command::cancel_job{.queue = p.last_queue, .id = p.last_job, .running = true});
      co_return true;
    }
    // No job waits for one of another queue, or for one of another policy.
    if (policy == overlap_policy::buffer_one && p.last_queue == schedule_.job.queue &&
        last->strategy == unique_strategy::while_executing) {
      auto const before = co_await unfinished(p.job_before);
      if (before) {  // it runs, and this one is blocked
        event.unserved = before->vests_in <= duration::zero();
        co_return false;
      }
      if (last->state == job_state::leased) co_return true;
    }
    event.unserved = last->vests_in <= duration::zero();
    co_return false;
  }

  /// A job of a tick before, if it has not ended.
  boost::asio::awaitable<std::optional<job>> unfinished(job_id id) {
    auto const& queue = schedule_.progress.last_queue;
    if (id.is_nil() || queue.empty()) co_return std::nullopt;
    auto found = co_await schedule_desk::ask(desk_, command::find_job{queue, id});
    if (found && is_terminal(found->state)) found.reset();
    co_return found;
  }

  [[nodiscard]] succession succession_of(timetable const& table, std::vector<ticking> const& jobs,
                                         time_point now) const {
    auto const& s = schedule_;
    succession out;
    auto const payload = encode_record(s);
    out.next.push_back(owned_job{
        schedule_job(s, {}, delay_of(s, table, now)), std::string{schedule_kind}, payload, {}});
    if (!jobs.empty()) out.to = s.job.queue;
    for (auto const& t : jobs) {
      out.jobs.push_back(owned_job{t.fields, s.job.kind, t.payload, t.key});
    }
    return out;
  }

  schedule_desk::self desk_;
  schedule_audience& audience_;
  schedule_desk::located const found_;
  stored_schedule schedule_;
};

/// The handler of jobs that are schedules, or places of them.
class schedule_handler final : public any_handler {
 public:
  schedule_handler(schedule_desk::self desk, std::shared_ptr<schedule_audience> audience)
      : any_handler{{.is_coroutine = true,
                     .max_snoozes = std::numeric_limits<std::uint32_t>::max()}},
        desk_{std::move(desk)},
        audience_{std::move(audience)} {}

  /// What cannot be read may be of a newer release: it is left to those who can.
  [[nodiscard]] std::unique_ptr<prepared_job> prepare(std::string_view payload,
                                                      std::string&) const override {
    if (auto s = decode_record<stored_schedule>(payload)) {
      return std::make_unique<schedule_run>(
          desk_, *audience_, schedule_desk::located{std::move(*s), std::string{payload}});
    }
    auto const place = decode_record<schedule_place>(payload);
    if (place && place->state == place_state::ended) return std::make_unique<forgotten_place>();
    if (place) return std::make_unique<put_off_job>(std::chrono::hours{24}, std::string{});
    return std::make_unique<put_off_job>(std::chrono::minutes{1},
                                         "there is a schedule that cannot be read here");
  }

 private:
  schedule_desk::self desk_;
  std::shared_ptr<schedule_audience> audience_;
};

}  // namespace detail
}  // namespace weir

#endif
