// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOBS_HPP
#define WEIR_STORE_SQLITE_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/queues.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace weir::detail {

/// The jobs in the file: a row each, in an order that is an index (schema.hpp). The rule decides;
/// `sqlite_job_steps` keeps the rows in step; this keeps the queues' pointers never late.
class sqlite_jobs : public sqlite_queue_commands {
 public:
  explicit sqlite_jobs(sqlite_scope& in) noexcept : sqlite_queue_commands{in} {}

  using sqlite_queue_commands::apply;

  /// Error: `store_full`, and nothing has changed.
  result<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c, time_point now) {
    work_ += c.jobs.size();
    auto* q = queues_.find(c.queue);
    if (!has_room(q, c.jobs, now)) return errc::store_full;
    if (q == nullptr) q = &queues_.make(c.queue);
    command::enqueue_jobs::result out;
    out.reserve(c.jobs.size());
    auto const before = q->due();
    for (auto const& j : c.jobs) {
      auto const arrival = steps_.enqueue(*q, j, now);
      if (arrival.vests) q->pointer = rule::pointer_with(q->pointer, *arrival.vests);
      out.push_back(arrival.answer);
    }
    moved(*q, before, now);
    queues_.settle(*q);
    return out;
  }

  result<std::vector<job>> apply(command::peek_jobs const& c, time_point now) {
    std::vector<job> out;
    if (auto const* const q = queues_.find(c.queue)) steps_.peek(*q, c.limit, now, out);
    return out;
  }

  result<dequeued> apply(command::dequeue_jobs const& c, time_point now) {
    return on_queue(c, c.limit, dequeued{}, [&](sqlite_queue& q) {
      auto const before = q.due();
      auto out = steps_.dequeue(q, c, now);
      moved(q, before, now);
      return out;
    });
  }

  result<std::optional<leased_job>> apply(command::obtain_lease const& c, time_point now) {
    return on_queue(c, 1, std::optional<leased_job>{},
                    [&](sqlite_queue& q) { return steps_.obtain(q, c, now); });
  }

  result<lease_renewal> apply(command::extend_lease const& c, time_point now) {
    return on_lease<lease_renewal>(c, now, [&](sqlite_queue& q, sqlite_job& r) {
      steps_.extend(q, r, c.lease, now);
      no_later_than(q, r.vesting, now);
      return lease_renewal{saturating_sub(r.vesting, now)};
    });
  }

  result<started> apply(command::start_job const& c, time_point now) {
    return on_lease<started>(
        c, now, [&](sqlite_queue& q, sqlite_job& r) { return steps_.start(q, r, now); });
  }

  result<command::complete_jobs::result> apply(command::complete_jobs const& c, time_point now) {
    command::complete_jobs::result out(c.jobs.size(), complete_outcome::lease_lost);
    return on_queue(c, c.jobs.size(), out, [&](sqlite_queue& q) {
      std::size_t i = 0;
      for (auto const& f : c.jobs) out[i++] = steps_.complete(q, f, now);
      return out;
    });
  }

  result<requeue_outcome> apply(command::requeue_job const& c, time_point now) {
    return on_lease<requeue_outcome>(c, now, [&](sqlite_queue& q, sqlite_job& r) {
      auto const outcome = steps_.requeue(q, r, c.delay, c.reason, now);
      if (outcome == requeue_outcome::requeued) no_later_than(q, r.vesting, now);
      return outcome;
    });
  }

  result<hint> apply(command::snooze_job const& c, time_point now) {
    return on_lease<hint>(c, now, [&](sqlite_queue& q, sqlite_job& r) {
      steps_.snooze(q, r, c.delay, c.memo, now);
      no_later_than(q, r.vesting, now);
      return hint{};
    });
  }

  result<hint> apply(command::return_job const& c, time_point now) {
    return on_lease<hint>(c, now, [&](sqlite_queue& q, sqlite_job& r) {
      steps_.give_back(q, r, now);
      no_later_than(q, r.vesting, now);
      return hint{};
    });
  }

  result<hint> apply(command::bury_job const& c, time_point now) {
    return on_lease<hint>(c, now, [&](sqlite_queue& q, sqlite_job& r) {
      steps_.bury(q, r, c.reason, now);
      return hint{};
    });
  }

  result<cancel_outcome> apply(command::cancel_job const& c, time_point now) {
    return on_queue(c, 1, cancel_outcome::not_found,
                    [&](sqlite_queue& q) { return steps_.cancel(q, c.id, c.running, now); });
  }

  result<std::optional<job>> apply(command::find_job const& c, time_point now) {
    auto const* const q = queues_.find(c.queue);
    return q == nullptr ? std::optional<job>{} : steps_.look(*q, c.id, now);
  }

  /// Error: `invalid_option` for a cursor that no page gave.
  result<job_page> apply(command::list_dead_letters const& c, time_point now) {
    std::uint64_t after = 0;
    auto const* const end = c.cursor.data() + c.cursor.size();
    if (!c.cursor.empty()) {
      auto const [at, ec] = std::from_chars(c.cursor.data(), end, after);
      if (ec != std::errc{} || at != end) return errc::invalid_option;
    }
    job_page page;
    if (auto const* const q = queues_.find(c.queue)) {
      if (auto const last = steps_.dead_letters(*q, after, c.limit, now, page.jobs)) {
        page.cursor = std::to_string(last);
      }
    }
    return page;
  }

  result<replayed> apply(command::replay_dead_letter const& c, time_point now) {
    return on_queue(c, 1, replayed{replay_outcome::not_found}, [&](sqlite_queue& q) {
      auto const answer = steps_.replay(q, c.id, c.delay, now);
      if (answer.outcome == replay_outcome::replayed) {
        no_later_than(q, saturating_add(now, c.delay), now);
      }
      return answer;
    });
  }

  result<bool> apply(command::purge_job const& c, time_point now) {
    return on_queue(c, 1, false, [&](sqlite_queue& q) { return steps_.purge(q, c.id, now); });
  }

  /// A little of the work that time has made: on average as much as steps make, and never much at
  /// once. Not within a step.
  void tidy(time_point now) {
    if (work_ == 0) return;
    steps_.reap(queues_, now, 2 * work_ + 2);
    work_ = 0;
    if (in_.ledger.idle > in_.options.max_idle_queues) forget_one(now);
  }

  /// Ends every lease of a job and of a queue, as if its time were over. To be called first in a
  /// transaction.
  void end_leases(time_point now) {
    queues_.forget();
    try {
      sqlite_run(in_.db, sql::end_queue_leases, now);
    } catch (sqlite_damage const&) {  // they end by their time
    }
    std::vector<std::int64_t> numbers;
    {
      sqlite_query q{in_.db, sql::leased_queues, now};
      while (q.next()) {
        if (q.type(0) == SQLITE_INTEGER) numbers.push_back(q.integer(0));
      }
    }
    sqlite_run(in_.db, sql::end_job_leases, now);
    for (auto const number : numbers) {
      if (auto* const q = queues_.by_number(number)) no_later_than(*q, now, now);
      queues_.flush();
      queues_.trim();
    }
  }

  /// Writes what a transaction has changed of its queues.
  void flush() { queues_.flush(); }

  void forget() noexcept {
    work_ = 0;
    queues_.forget();
  }

  void trim() noexcept { queues_.trim(); }

 private:
  template <class C, class Answer, class Step>
  result<Answer> on_queue(C const& c, std::size_t work, Answer const& absent, Step&& step) {
    work_ += work;
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return absent;
    auto answer = step(*q);
    queues_.settle(*q);
    return answer;
  }

  template <class Answer, class C, class Step>
  result<Answer> on_lease(C const& c, time_point now, Step&& step) {
    auto* const q = queues_.find(c.queue);
    auto r = q == nullptr ? std::nullopt : steps_.leased(*q, c.id, c.fence, now);
    if (!r) return errc::lease_lost;
    return step(*q, *r);
  }

  /// Room for what the jobs need: a record each, and one for a key that may outlive it.
  bool has_room(sqlite_queue const* q, std::span<new_job const> jobs, time_point now) {
    auto const fits = [&](bool only_new) {
      std::uint64_t need = 0;
      for (auto const& j : jobs) {
        if (only_new && q != nullptr && steps_.known(*q, j.id, now)) continue;
        need += j.strategy == unique_strategy::until_expired ? 2 : 1;
      }
      return in_.ledger.jobs + need <= in_.options.max_jobs;
    };
    if (fits(false)) return true;
    constexpr std::size_t page = 1000;
    while (steps_.reap(queues_, now, page) != 0) {
    }
    return fits(true);
  }

  std::size_t work_ = 0;
};

}  // namespace weir::detail

#endif
