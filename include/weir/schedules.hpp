// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULES_HPP
#define WEIR_SCHEDULES_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/detail/unsafe_temporary.hpp"
#include "weir/enqueue.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/job_codec.hpp"
#include "weir/job_traits.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/scheduler/requests.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/default_completion_token.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace weir {

/// The schedules of a store: jobs that are to be enqueued again and again. A `scheduler` fires
/// them, in this process or in others; any number of them may, and each tick becomes one job.
///
///     weir::schedules schedules{store};
///     weir::schedule const daily{.name = "daily report",
///                                .when = weir::cron{"30 2 * * *", "America/New_York"}};
///     report const job{"daily"};
///     co_await schedules.async_put(daily, job);
///
/// A schedule is kept beside the queue of its jobs, and its tick is booked in the same step in
/// which its job is enqueued: there is no leader, and no tick is lost or doubled whoever dies.
///
/// Errors of every operation, besides those named at it: `store_unavailable` (not done, or others
/// changed the schedule each time it was tried), `outcome_unknown` (ask again, which is safe but
/// for `async_trigger`, which enqueues once more), `store_corrupt` (the schedule cannot be read by
/// this version of weir; `async_remove` removes it), `operation_aborted` (cancelled; done or not
/// done: whoever finds half of it completes it); `store_full`, `not_enough_memory`, and what a
/// store adds.
///
/// Executor: the associated one of the handler, or else the store's. Thread-safety: one object may
/// be used by several threads.
template <class Store, class Clock = system_clock>
class schedules {
  static_assert(job_store<Store>, "weir::schedules: this store does not model weir::job_store "
                                  "(it cannot execute every command of weir/command/jobs.hpp)");
  static_assert(host_clock<Clock>, "weir::schedules: this clock does not model weir::host_clock");

 public:
  using store_type = Store;                            ///< where the schedules are
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// @param store where the schedules and their jobs are; copied
  /// @param clock says what date it is
  /// @param ids   where the ids of jobs, and the names of generations, come from
  explicit schedules(Store store, Clock clock = Clock{}, id_source ids = id_source{})
      : ids_{ids},
        desk_{std::make_shared<detail::schedule_desk>(
            detail::schedule_store::of(std::move(store)),
            [clock = std::move(clock)] { return clock.system_now(); }, std::move(ids))} {}

  /// The store's: where handlers without an executor of their own are called.
  [[nodiscard]] executor_type get_executor() const noexcept { return desk_->get_executor(); }

  /// Makes a schedule, or changes the one of its name. If its ticks become others they count from
  /// the change, so a changed definition fires none of its own past. Where nothing is different
  /// nothing is changed, so every process may do this whenever it starts. A schedule that is paused
  /// stays so.
  ///
  /// @param definition when, and how
  /// @param job        what is enqueued, encoded before this returns, under its type's policies.
  ///                   Unique keys are none of them: `definition` says what is done with jobs that
  ///                   overlap. Its JSON form has up to `limits::scheduled_payload_size` bytes
  /// @param options    its queue and priority; a schedule in another queue is moved, and no tick is
  ///                   lost or doubled by that. Anything else is `invalid_option`
  /// @param token      completes with `void(error_code, put_outcome)`
  /// @return what has become of it
  /// Errors: `invalid_key` (its name), `invalid_option` (its expression, its zone, a tick that
  /// never comes, a `tick_member` that the job does not have, and what else is wrong),
  /// `invalid_wait`, `invalid_queue`, `unencodable_payload`, `payload_too_large`, other bad input,
  /// `store_full`.
  template <class Job, class Token = default_token>
  WEIR_OPERATION auto async_put(schedule const& definition, Job const& job,
                                enqueue_options options = {}, Token&& token = Token{}) const {
    using policy = job_policy<Job>;
    static_assert(policy::unique() == unique_strategy::none,
                  "weir::schedules: a job that a schedule enqueues has no unique strategy: "
                  "schedule::overlap says what is done with jobs that overlap");
    stored_schedule wanted;
    wanted.definition = definition;
    error_code problem;
    if (!options.headers.text().empty()) {
      problem = detail::explained(errc::invalid_option, "a schedule keeps no headers");
    } else if (options.delay != duration{} || !options.ids.empty()) {
      problem = detail::explained(errc::invalid_option, "a schedule takes no delay and no ids");
    }
    // In the schedule's own record, which is JSON.
    auto payload = detail::encode_json(job);
    if (payload.has_value()) {
      wanted.job = {detail::queue_for(job, options),
                    std::string{policy::kind()},
                    std::move(payload).value(),
                    options.priority.value_or(policy::priority(job)),
                    policy::max_attempts(),
                    policy::deadline(),
                    policy::retention()};
    } else if (!problem) {
      problem = payload.error();
    }
    return ask<put_outcome>(
        [wanted = std::move(wanted), problem](desk const& d) mutable {
          return checked(d, std::move(wanted), problem);
        },
        std::forward<Token>(token));
  }

  /// g++ 12 destroys such a temporary twice when it stands beside `co_await`. Write
  /// `weir::schedule const daily{…}; co_await schedules.async_put(daily, job);`
  template <class Job, class Token = default_token>
    requires detail::unsafe_body<schedule, Token>
  auto async_put(schedule&&, Job const&, enqueue_options = {}, Token&& = Token{}) const {
    static_assert(std::is_void_v<Job>,
                  "weir::schedules: give the schedule a name first: g++ 12 destroys a temporary "
                  "beside co_await twice");
  }

  /// Reads one schedule.
  ///
  /// @param name  its name
  /// @param token completes with `void(error_code, std::optional<stored_schedule>)`
  /// @return empty: there is none
  template <class Token = default_token>
  WEIR_OPERATION auto async_find(std::string name, Token&& token = Token{}) const {
    return ask<std::optional<stored_schedule>>(
        [name = std::move(name)](desk const& d) {
          return detail::schedule_requests::find(d, name);
        },
        std::forward<Token>(token));
  }

  /// Lists schedules.
  ///
  /// @param limit  how many at most, 1…`limits::batch`
  /// @param cursor of the page before; empty to begin
  /// @param token  completes with `void(error_code, schedule_page)`
  /// @return some of them; the cursor is empty at the end
  /// Errors: `invalid_batch` for a limit out of its range, `invalid_option` for a cursor that no
  /// page gave.
  template <class Token = default_token>
  WEIR_OPERATION auto async_list(std::uint32_t limit = 100, std::string cursor = {},
                                 Token&& token = Token{}) const {
    return ask<schedule_page>(
        [limit, cursor = std::move(cursor)](desk const& d) {
          return detail::schedule_requests::list(d, limit, cursor);
        },
        std::forward<Token>(token));
  }

  /// Removes a schedule. Jobs that it has enqueued stay.
  ///
  /// @param name  its name
  /// @param token completes with `void(error_code, bool)`
  /// @return was there one?
  template <class Token = default_token>
  WEIR_OPERATION auto async_remove(std::string name, Token&& token = Token{}) const {
    return ask<bool>([name = std::move(name)](
                         desk const& d) { return detail::schedule_requests::remove(d, name); },
                     std::forward<Token>(token));
  }

  /// Fires no ticks until `async_resume`. Those that come meanwhile are not fired later, either.
  ///
  /// @param name  its name
  /// @param token completes with `void(error_code, bool)`
  /// @return is there one of this name?
  /// Error: `invalid_option`: its zone cannot be loaded here.
  template <class Token = default_token>
  WEIR_OPERATION auto async_pause(std::string name, Token&& token = Token{}) const {
    return ask<bool>([name = std::move(name)](
                         desk const& d) { return detail::schedule_requests::pause(d, name, true); },
                     std::forward<Token>(token));
  }

  /// Ends a pause.
  ///
  /// @param name  its name
  /// @param token completes with `void(error_code, bool)`
  /// @return is there one of this name?
  /// Error: `invalid_option`: its zone cannot be loaded here.
  template <class Token = default_token>
  WEIR_OPERATION auto async_resume(std::string name, Token&& token = Token{}) const {
    return ask<bool>(
        [name = std::move(name)](desk const& d) {
          return detail::schedule_requests::pause(d, name, false);
        },
        std::forward<Token>(token));
  }

  /// Enqueues a job of the schedule now, whatever its ticks and its overlap policy are.
  ///
  /// @param name  its name
  /// @param token completes with `void(error_code, std::optional<job_id>)`
  /// @return the job; empty: there is no such schedule
  /// Errors: `store_full`, `unencodable_payload`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_trigger(std::string name, Token&& token = Token{}) const {
    return ask<std::optional<job_id>>(
        [name = std::move(name)](desk const& d) {
          return detail::schedule_requests::trigger(d, name);
        },
        std::forward<Token>(token));
  }

  /// Enqueues, at once, a job for each tick of a past time. A job that the queue has a record of is
  /// not enqueued again: ids are made of ticks. Ticks that are still to be fired are left to their
  /// time.
  ///
  /// @param name  its name
  /// @param from  the first instant that may be one of them
  /// @param to    the last; of more than 1,000 ticks, or whose jobs have more than
  ///              `limits::batch_bytes` together, none is enqueued (`invalid_batch`)
  /// @param token completes with `void(error_code, std::uint32_t)`
  /// @return how many ticks there are
  /// Errors: `invalid_batch`; `invalid_option`: its zone cannot be loaded here; `store_full`,
  /// `unencodable_payload`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_backfill(std::string name, time_point from, time_point to,
                                     Token&& token = Token{}) const {
    return ask<std::uint32_t>(
        [name = std::move(name), from, to](desk const& d) {
          return detail::schedule_requests::backfill(d, name, from, to);
        },
        std::forward<Token>(token));
  }

 private:
  using desk = std::shared_ptr<detail::schedule_desk const>;

  static boost::asio::awaitable<put_outcome> checked(desk d, stored_schedule wanted,
                                                     error_code problem) {
    if (problem) throw detail::schedule_desk::failure{problem};
    co_return co_await detail::schedule_requests::put(std::move(d), std::move(wanted));
  }

  template <class T, class Begin, class Token>
  auto ask(Begin begin, Token&& token) const {
    auto initiate = [d = desk_](boost::asio::any_completion_handler<void(error_code, T)> handler,
                                Begin what) {
      detail::spawn<T>(d->get_executor(), detail::schedule_desk::outcome_of(what(d)),
                       std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code, T)>(
        detail::bound_initiation{get_executor(), std::move(initiate)}, token, std::move(begin));
  }

  id_source ids_;
  std::shared_ptr<detail::schedule_desk> desk_;
};

}  // namespace weir

#endif
