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
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"
#include "weir/worker/handler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

/// What a scheduler has done with the ticks of a schedule that had come.
struct schedule_event {
  std::string_view name;      ///< the schedule's
  std::uint32_t fired = 0;    ///< jobs that are enqueued in this step
  std::uint64_t skipped = 0;  ///< ticks that the overlap policy left out
  std::uint64_t missed = 0;   ///< ticks that came too late for the catch-up policy
  bool unserved = false;  ///< ticks are skipped for a job that waits, or whose lease is over, and
                          ///< that nobody claims: its queue is not served, or too slowly
  duration lateness{};    ///< how long after its tick, and its jitter, the last job came
};

/// Is told of each firing, before it is stored: if the scheduler dies then, or the schedule has
/// changed, it is done and told once more. Must not throw.
using schedule_observer = std::function<void(schedule_event const&)>;

namespace detail {

/// Fires the ticks of a schedule that have come.
class schedule_run final : public prepared_job {
 public:
  schedule_run(schedule_desk::self desk, schedule_observer const& observer,
               schedule_desk::located found)
      : desk_{std::move(desk)},
        observer_{observer},
        found_{std::move(found)},
        schedule_{found_.value} {}

  boost::asio::awaitable<handler_result> run(job_context& context) override {
    auto& s = schedule_;
    if (!s.confirmed || !s.moved_from.empty()) {
      auto const stands = co_await schedule_desk::standing_of(desk_, s);
      if (stands.has_error()) throw boost::system::system_error{stands.error()};
      if (*stands == schedule_desk::standing::stray) {
        auto const ended = co_await schedule_desk::drop(desk_, found_);
        if (ended.has_error()) throw boost::system::system_error{ended.error()};
        throw snooze_for{std::chrono::seconds{1}};  // unless it is gone
      }
      if (*stands == schedule_desk::standing::coming) throw snooze_for{std::chrono::minutes{1}};
      s.confirmed = true;
    }
    if (!s.moved_from.empty()) {
      auto const moved = co_await schedule_desk::finish_move(desk_, found_);
      if (moved.has_error()) throw boost::system::system_error{moved.error()};
      throw snooze_for{std::chrono::seconds{1}};  // unless it is another lease's by now
    }
    auto zone = schedule_desk::zone_of(s.definition);
    if (zone.has_error()) {
      tell("the schedule " + s.definition.name + " is left to others: " + zone.error().message());
      throw snooze_for{std::chrono::seconds{10}};
    }
    auto const release = schedule_desk::zone_data_of(s.definition);
    if (release < s.progress.zone_data) {
      tell("the schedule " + s.definition.name +
           " is left to others: its next tick is of the time "
           "zone database " +
           s.progress.zone_data + ", and this host has " + release);
      throw snooze_for{std::chrono::seconds{10}};
    }
    timetable const table{s.definition, *zone};
    auto const now = desk_->date();
    auto due = s.paused ? due_ticks{{}, 0, s.progress.last, s.progress.next}
                        : ticks_due(s.definition, table, s.progress.last, now);
    schedule_event event{.name = s.definition.name, .missed = due.missed};
    std::vector<schedule_desk::ticking> jobs;
    std::size_t bytes = 0;
    for (auto const t : due.fire) {
      auto const fires = co_await clear_the_way(!jobs.empty(), event);
      if (fires.has_error()) throw boost::system::system_error{fires.error()};
      if (!*fires) {
        ++event.skipped;
        continue;
      }
      if (s.definition.overlap == overlap_policy::replace && !jobs.empty()) {
        jobs.pop_back();  // of which nobody has heard
        ++event.skipped;
      }
      if (!schedule_desk::add_tick(jobs, s, t, id_of_tick(s, t))) {
        throw give_up{"its job has no member " + s.definition.tick_member + " for its tick"};
      }
      s.progress.last_job = jobs.back().fields.id;
      event.lateness = saturating_sub(now, table.fired_at(t));
      bytes += jobs.back().payload.size() + s.job.kind.size();
      if (bytes > limits::batch_bytes / 2) {  // the rest comes in another step
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
    ++s.progress.steps;
    if (event.missed != 0) {
      tell("the schedule " + s.definition.name + ": " + std::to_string(event.missed) +
           " of its ticks came too late, and are not fired");
    }
    if (event.unserved) {
      tell("the schedule " + s.definition.name +
           " skips ticks: nobody claims the job of its last " + "one, in queue " + s.job.queue);
    }
    if (observer_ && (event.fired != 0 || event.skipped != 0 || event.missed != 0)) {
      observer_(event);
    }
    context.succeed(std::make_shared<succession const>(succession_of(table, jobs, now)));
    co_return handler_result{};
  }

  handler_result call(job_context&) override { return {}; }
  [[nodiscard]] std::optional<duration> backoff(std::uint32_t, std::uint64_t) const override {
    return std::nullopt;
  }

 private:
  static void tell(std::string const& what) {
    tell_log(log::level::warning, log::topic::job, "scheduler: " + what);
  }

  /// May a tick be fired, as far as the job before it goes?
  ///
  /// @param in_this_step that one is fired in this step, too
  boost::asio::awaitable<result<bool>> clear_the_way(bool in_this_step, schedule_event& event) {
    auto const policy = schedule_.definition.overlap;
    if (policy == overlap_policy::allow) co_return true;
    if (in_this_step) co_return policy == overlap_policy::replace;
    auto const last = schedule_.progress.last_job;
    if (last.is_nil()) co_return true;
    auto const& queue = schedule_.job.queue;
    auto const found = co_await schedule_desk::ask(desk_, command::find_job{queue, last});
    if (found.has_error()) co_return found.error();
    if (!*found || is_terminal((*found)->state)) co_return true;
    if (policy != overlap_policy::replace) {
      bool const runs = (*found)->state == job_state::leased;
      if (runs && policy == overlap_policy::buffer_one) co_return true;
      event.unserved = policy == overlap_policy::skip && (*found)->vests_in <= duration::zero();
      co_return false;
    }
    auto const ended = co_await schedule_desk::ask(
        desk_, command::cancel_job{.queue = queue, .id = last, .running = true});
    if (ended.has_error()) co_return ended.error();
    co_return true;
  }

  [[nodiscard]] succession succession_of(timetable const& table,
                                         std::vector<schedule_desk::ticking> const& jobs,
                                         time_point now) const {
    auto const& s = schedule_;
    succession out;
    auto const payload = encode_schedule(s);
    out.next.push_back(
        owned_job{schedule_desk::job_of(s, {}, schedule_desk::delay_of(s, table, now)),
                  std::string{schedule_kind},
                  payload,
                  {}});
    if (!jobs.empty()) out.to = s.job.queue;
    for (auto const& t : jobs) {
      out.jobs.push_back(owned_job{t.fields, s.job.kind, t.payload, t.key});
    }
    return out;
  }

  schedule_desk::self desk_;
  schedule_observer const& observer_;
  schedule_desk::located const found_;
  stored_schedule schedule_;
};

/// The handler of jobs that are schedules.
class schedule_handler final : public any_handler {
 public:
  schedule_handler(schedule_desk::self desk, std::shared_ptr<schedule_observer const> observer)
      : any_handler{{.is_coroutine = true,
                     .max_snoozes = std::numeric_limits<std::uint32_t>::max()}},
        desk_{std::move(desk)},
        observer_{std::move(observer)} {}

  [[nodiscard]] std::unique_ptr<prepared_job> prepare(std::string_view payload,
                                                      std::string& reason) const override {
    if (auto s = decode_schedule(payload)) {
      return std::make_unique<schedule_run>(
          desk_, *observer_, schedule_desk::located{std::move(*s), std::string{payload}});
    }
    reason = "it is no schedule that can be read here";
    return nullptr;
  }

 private:
  schedule_desk::self desk_;
  std::shared_ptr<schedule_observer const> observer_;
};

}  // namespace detail
}  // namespace weir

#endif
