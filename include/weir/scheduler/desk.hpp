// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_DESK_HPP
#define WEIR_SCHEDULER_DESK_HPP

#include "weir/clock/system.hpp"
#include "weir/command/jobs.hpp"
#include "weir/detail/erased.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/owned_command.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/scheduler/booking.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weir::detail {

/// A store as schedules use it.
using schedule_store =
    any_store<command::find_job, command::enqueue_jobs, command::relay_job, command::cancel_job,
              command::purge_job, command::list_jobs, command::list_queues>;

/// Schedules as they are in a store, and the steps that change one. Each step compares and sets:
/// whoever comes too late looks again.
class schedule_desk {
 public:
  schedule_desk(schedule_store store, std::function<time_point()> date, id_source ids)
      : store_{std::move(store)},
        date_{std::move(date)},
        ids_{std::move(ids)} {}

  /// How often an operation tries again because another one has changed the same schedule.
  static constexpr int most_tries = 100;
  static void again(int& tries) {
    if (++tries != most_tries) return;
    throw failure{explained(errc::store_unavailable, "schedules: others change it all the time")};
  }

  using failure = boost::system::system_error;
  /// Throws `failure`.
  template <class T>
  using answer = boost::asio::awaitable<T>;
  using self = std::shared_ptr<schedule_desk const>;
  template <class T>
  [[nodiscard]] static boost::asio::awaitable<result<T>> outcome_of(answer<T> asked) {
    try {
      co_return co_await std::move(asked);
    } catch (failure const& e) {
      co_return e.code();
    }
  }

  [[nodiscard]] boost::asio::any_io_executor const& get_executor() const noexcept {
    return store_.get_executor();
  }
  [[nodiscard]] std::uint32_t shard_count() const { return store_.shard_count(); }
  [[nodiscard]] time_point date() const { return date_(); }
  [[nodiscard]] id_source const& ids() const noexcept { return ids_; }

  template <class C>
  [[nodiscard]] static answer<typename C::result> ask(self by, C const& c) {
    if (by->store_.executes_now()) co_return by->store_.execute(c).value();
    auto const kept = std::make_shared<owned_command<C>>(c);
    auto start = [by, kept](auto handler) { by->store_.start(kept->get(), std::move(handler)); };
    auto asked = attempt<typename C::result>(any_clock::of(system_clock{}), steady_time::max(),
                                             kept, std::move(start));
    auto got = co_await std::move(asked);
    co_return std::move(got).value();
  }

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

  /// Ends one. False: it has changed meanwhile.
  static answer<bool> drop(self by, located there) {
    return end_job(std::move(by), companion_of(there.value.job.queue),
                   id_of_schedule(there.value.definition.name), std::move(there.payload));
  }

  static answer<bool> rewrite(self by, located there, stored_schedule made, duration delay) {
    auto const companion = companion_of(made.job.queue);
    auto const payload = encode_record(made);
    auto const next = schedule_job(made, payload, delay);
    co_return co_await exchange(by, companion, there.payload, next);
  }

  /// The schedule of this name among those of a queue. Error: `store_corrupt`.
  static answer<std::optional<located>> at(self by, std::string queue, std::string name) {
    auto const companion = companion_of(queue);
    auto const found = co_await ask(by, command::find_job{companion, id_of_schedule(name)});
    std::optional<located> out;
    if (!found || is_terminal(found->state)) co_return out;
    auto s = decode_record<stored_schedule>(found->payload);
    if (!s || s->definition.name != name) throw failure{errc::store_corrupt};
    out.emplace(std::move(*s), found->payload);
    co_return out;
  }

  /// Error: `store_corrupt`.
  static answer<std::optional<schedule_place>> place_of_name(self by, std::string name) {
    auto const found = co_await ask(by, command::find_job{places_queue, id_of_schedule(name)});
    std::optional<schedule_place> out;
    if (!found || is_terminal(found->state)) co_return out;
    out = decode_record<schedule_place>(found->payload);
    if (!out) throw failure{errc::store_corrupt};
    co_return out;
  }

  /// Compares and sets. False: it is another one by now.
  static answer<bool> set_place(self by, std::string name, std::optional<schedule_place> before,
                                schedule_place after) {
    auto const payload = encode_record(after);
    new_job job;
    job.id = id_of_schedule(name);
    job.kind = place_kind;
    job.payload = payload;
    job.delay = after.state == place_state::ended ? std::chrono::hours{24} : limits::span;
    job.max_attempts = limits::attempts;
    if (!before) {
      co_await purge_dead(by, std::string{places_queue}, job.id);
      co_await ask(by, command::enqueue_jobs{places_queue, std::span{&job, 1}});
      co_return co_await place_of_name(by, name) == after;
    }
    co_return co_await exchange(by, std::string{places_queue}, encode_record(*before), job);
  }

  /// Puts a job in the place of the one of its id, if that has this payload. False: it has another.
  static answer<bool> exchange(self by, std::string queue, std::string expected, new_job next) {
    auto const done = co_await ask(
        by, command::relay_job{
                .queue = queue, .id = next.id, .expected = expected, .next = std::span{&next, 1}});
    co_return done.outcome == relay_outcome::relayed;
  }
  /// Ends a job, if it has this payload. False: it has another.
  static answer<bool> end_job(self by, std::string queue, job_id id, std::string expected) {
    auto const done =
        co_await ask(by, command::relay_job{.queue = queue, .id = id, .expected = expected});
    co_return done.outcome == relay_outcome::relayed;
  }

  static answer<lookup> locate(self by, std::string name) {
    lookup out;
    for (int tries = 0;; again(tries)) {
      auto place = co_await place_of_name(by, name);
      bool const seen = tries != 0 && out.place == place;
      out.place = std::move(place);
      if (seen || !out.place) co_return out;
      auto here = co_await at(by, out.place->queue, name);
      bool const named = here && here->value.generation == out.place->generation &&
                         here->value.moves == out.place->moves;
      if (named) {
        out.there = std::move(here);
        co_return out;
      }
      // It is not there, or it has moved since its place was read.
    }
  }

  /// A dead letter of this id would be taken for the job itself.
  static answer<bool> purge_dead(self by, std::string queue, job_id id) {
    auto const found = co_await ask(by, command::find_job{queue, id});
    if (!found || !is_terminal(found->state)) co_return false;
    co_return co_await ask(by, command::purge_job{queue, id});
  }

 private:
  schedule_store store_;
  std::function<time_point()> date_;
  id_source ids_;
};

}  // namespace weir::detail

#endif
