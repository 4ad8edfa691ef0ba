// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_EXPLAIN_HPP
#define WEIR_CONSOLE_EXPLAIN_HPP

#include "weir/command/jobs.hpp"
#include "weir/console/asking.hpp"
#include "weir/console/text.hpp"
#include "weir/execute.hpp"
#include "weir/job.hpp"
#include "weir/job_explanation.hpp"
#include "weir/key_policy.hpp"
#include "weir/registered_worker.hpp"
#include "weir/unique.hpp"
#include "weir/worker/memo.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Whether the queue of a job is held back by a snooze, since it has a due job and is in no scan.
/// Empty: it is not to be found out among so many queues.
inline boost::asio::awaitable<std::optional<bool>> is_held_back(console_queue q, std::string name) {
  bool const schedules = name.starts_with(companion_prefix);
  for (std::uint32_t shard = 0; shard != q.get_store().shard_count(); ++shard) {
    command::scan_visible_queues const scan{.shard = shard, .limit = 1000, .schedules = schedules};
    auto const [ec, due] = co_await async_execute(q.get_store(), scan, as_value);
    if (ec) co_return std::nullopt;
    if (std::ranges::find(due.queues, name) != due.queues.end()) co_return false;
    if (due.next_in && *due.next_in <= duration{})
      co_return std::nullopt;  // there are more of them
  }
  co_return true;
}

/// A leased job of the same unique key.
struct twin {
  twin() = default;  // it is no aggregate, for g++ 12 beside `co_await`
  std::optional<job> found;
  bool is_known = false;  ///< it was found, or all that are leased were looked at
};
/// Looks for one in up to 10 pages: a page may end before the first that is leased.
inline boost::asio::awaitable<twin> running_twin(console_queue q, std::string name, job const& j) {
  twin out;
  std::string cursor;
  for (int pages = 0; pages != 10 && !out.is_known; ++pages) {
    auto [ec, page] = co_await q.async_list(name, job_state::leased, 1000, cursor, as_value);
    if (ec) break;
    auto const is_twin = [&j](job const& other) {
      return other.id != j.id && other.unique_key == j.unique_key;
    };
    auto const at = std::ranges::find_if(page.jobs, is_twin);
    if (at != page.jobs.end()) out.found = std::move(*at);
    cursor = std::move(page.cursor);
    out.is_known = out.found || cursor.empty();
  }
  co_return out;
}

/// The living workers of the register, among up to 1,000.
struct known_workers {
  known_workers() = default;  // it is no aggregate, for g++ 12 beside `co_await`
  std::vector<registered_worker> alive;
  bool is_all = false;  ///< the register was read, and has no more
};
inline boost::asio::awaitable<known_workers> find_workers(console_queue q) {
  known_workers out;
  auto listed = co_await list_workers(q, 1000, "");
  if (listed.has_error()) co_return out;  // it is no reason to explain nothing
  out.is_all = listed->cursor.empty();
  out.alive = std::move(listed->workers);
  std::erase_if(out.alive, [](registered_worker const& w) { return !w.seems_alive(); });
  co_return out;
}

/// The names of some workers.
[[nodiscard]] inline std::string names_of(std::vector<registered_worker const*> const& workers) {
  std::string out;
  for (std::size_t i = 0; i != workers.size(); ++i) {
    if (i == 3) return out + " and " + count_text(workers.size() - i) + " more";
    out.append(i == 0 ? "" : ", ").append(workers[i]->name);
  }
  return out;
}

/// Explains by the register who runs the jobs of a queue.
///
/// @param waits is the job due, in a queue that is not held?
/// @return what they know of its kind; null: it is not to be found out
inline served_kind const* explain_workers(known_workers const& known, std::uint32_t shard_count,
                                          std::string const& name, job const& j, bool waits,
                                          job_explanation& out) {
  std::vector<registered_worker const*> serving;
  std::vector<registered_worker const*> stopping;
  std::uint64_t hands = 0;
  std::uint64_t busy = 0;
  bool all_known = known.is_all;
  bool knows_kind = false;
  std::size_t others = 0;
  for (auto const& w : known.alive) {
    if (w.fires_schedules) continue;
    bool const has_kind = w.find_kind(j.kind) != nullptr;
    if (!has_kind || !w.serves(name, shard_count)) {
      ++others;
      knows_kind = knows_kind || has_kind;
      all_known = all_known && w.is_whole;
      continue;
    }
    (w.stopping ? stopping : serving).push_back(&w);
    if (w.stopping) continue;
    hands += w.concurrency;
    busy += std::min(w.busy, w.concurrency);
  }
  auto const say = [&out](char const* code, std::string text) {
    out.because.push_back({code, std::move(text)});
  };
  if (!stopping.empty()) {
    say("workers_stopping",
        "Of those that serve its queue these are stopping: " + names_of(stopping) + ".");
  }
  if (!serving.empty()) {
    bool const full = waits && busy >= hands;
    say(full ? "workers_busy" : "workers",
        "Its queue is served by " + names_of(serving) + ": " + count_text(busy) + " of " +
            count_text(hands) + " hands are busy" + (full ? ", so it waits for one." : "."));
  } else if (others != 0 && all_known) {
    say("no_worker", "Of " + count_text(others) + " registered workers that seem alive none " +
                         (knows_kind ? "serves this queue, though some have a handler for "
                                     : "has a handler for ") +
                         j.kind + ".");
    out.unknown.emplace_back("whether a worker that is not registered does");
  } else if (stopping.empty()) {
    out.unknown.emplace_back("whether a worker serves this queue, with a handler for " + j.kind +
                             (others == 0 ? ": none is registered that seems alive" : ""));
  }
  auto const& found = serving.empty() ? stopping : serving;
  return found.empty() ? nullptr : found.front()->find_kind(j.kind);
}

/// Explains whether the limits of a job's kind refuse it.
inline boost::asio::awaitable<void> explain_limits(console_queue q, job const& j,
                                                   served_kind const& limits,
                                                   job_explanation& out) {
  if (limits.concurrency != 0 && limits.concurrency_key.empty()) {
    out.unknown.emplace_back("whether its concurrency limit refuses it, whose key is made of the "
                             "job");
  } else if (limits.concurrency != 0) {
    command::inspect_permits const look{.key = limits.concurrency_key, .limit = 1};
    auto const [ec, census] = co_await async_execute(q.get_store(), look, as_value);
    if (!ec && census.in_use >= limits.concurrency) {
      std::string text = "The concurrency limit " + limits.concurrency_key +
                         " is reached: " + count_text(census.in_use) + " of " +
                         count_text(limits.concurrency) + " permits are held, and " +
                         count_text(census.waiting) + " wait.";
      if (!census.holders.empty()) {
        text += " One of the holders is " + census.holders.front().holder + ", for " +
                time_text(census.holders.front().expires_in) + " more unless it renews.";
      }
      out.because.push_back({"limit_reached", std::move(text)});
    } else if (ec) {
      out.unknown.emplace_back("whether the concurrency limit " + limits.concurrency_key +
                               " refuses it: " + ec.message());
    }
  }
  bool const is_paid = j.memo == reservation_memo(j.attempts + 1, j.snoozes);
  if (limits.rate.empty() || is_paid) co_return;
  if (limits.rate_key.empty() || limits.rate_cost == 0) {
    out.unknown.emplace_back("whether its rate limit refuses it, whose key or cost is made of the "
                             "job");
  } else {
    auto const digest = sha256_key{}(limits.rate_key);
    command::peek_bucket const look{
        .key = digest.view(), .quotas = limits.rate, .cost = limits.rate_cost};
    auto const [ec, level] = co_await async_execute(q.get_store(), look, as_value);
    if (!ec && !level.allowed) {
      out.because.push_back({"rate_used_up", "The rate limit " + limits.rate_key +
                                                 " is used up. It has enough tokens in " +
                                                 time_text(level.retry_after) + "."});
    } else if (ec) {
      out.unknown.emplace_back("whether the rate limit " + limits.rate_key +
                               " refuses it: " + ec.message());
    }
  }
}

/// Explains a job that waits.
inline boost::asio::awaitable<void> explain_waiting(console_queue q, std::string name, job const& j,
                                                    job const& shown, queue_stats const& stats,
                                                    job_explanation& out) {
  auto const say = [&out](char const* code, std::string text) {
    out.because.push_back({code, std::move(text)});
  };
  bool const visible = j.vests_in <= duration{};
  if (j.attempts >= j.max_attempts) {
    say("attempts_spent", "All of its attempts are spent: the next worker that finds it makes it a "
                          "dead letter.");
  }
  if (j.deadline_in && *j.deadline_in <= duration{}) {
    say("deadline_missed", "Its deadline has passed: the next worker that finds it makes it a dead "
                           "letter.");
  }
  if (!visible) say("not_due", "It is due in " + time_text(j.vests_in) + ".");
  if (!visible && !j.memo.empty()) {
    say("put_off", "A worker put it off, and noted: " + shown.memo);
  } else if (!visible && j.snoozes != 0) {
    say("put_off", "Workers have put it off " + count_text(j.snoozes) +
                       (j.snoozes == 1 ? " time" : " times") +
                       ", as a limit refused it or its handler asked for it.");
  }
  if (j.attempts != 0 && !j.reason.empty()) {
    say("failed", "Attempt " + count_text(j.attempts) + " of " + count_text(j.max_attempts) +
                      " failed: " + shown.reason);
  }
  if (stats.paused) {
    say("queue_paused", "The queue is paused, until it is resumed.");
  } else if (stats.next_in && *stats.next_in <= duration{}) {
    auto const held = co_await is_held_back(q, name);
    if (held.value_or(false)) {
      say("queue_held",
          "The queue is held back for a time: a limit of all its jobs was reached, or somebody has "
          "snoozed it.");
    }
  }
  if (holds_while_waiting(j.strategy)) {
    say("unique", "It has the unique key " + shown.unique_key + ", " +
                      std::string{to_string(j.strategy)} +
                      ", which refuses others and not this one.");
  }
  if (needs_start(j.strategy)) {
    auto const other = co_await running_twin(q, name, j);
    if (other.found) {
      say("key_taken", "Job " + to_string(other.found->id) +
                           " has the same unique key, and is leased for " +
                           time_text(other.found->vests_in) + " more.");
    } else if (!other.is_known) {
      out.unknown.emplace_back("whether another job of its unique key runs");
    }
  }
  if (!visible) co_return;
  auto const [ec, first] = co_await q.async_peek(name, 1, as_value);
  if (!ec && !first.empty() && first.front().id != j.id) {
    say("not_first", "It is due, and others of the queue are before it: the first is " +
                         to_string(first.front().id) + ".");
  } else if (!ec && !first.empty()) {
    say("first", "It is due, and the first of its queue.");
  }
}

/// Explains who has a job, by the register.
inline void explain_holder(known_workers const& known, std::string const& holder,
                           job_explanation& out) {
  auto const found = std::ranges::find(known.alive, holder, &registered_worker::holder);
  if (found == known.alive.end()) {
    out.unknown.emplace_back("whether its worker lives");
  } else {
    out.because.push_back({"worker", "That worker is " + found->name + ", and was heard of " +
                                         time_text(found->seen) + " ago."});
  }
}

/// Explains a job by two to seven questions, those for `j` and `stats` among them, one for each
/// shard, and up to nine more where the jobs that are leased are on many pages.
///
/// @param j     as the store has it
/// @param shown what of it may be read by people
inline boost::asio::awaitable<job_explanation> explain(console_queue q, std::string name,
                                                       job const& j, job const& shown,
                                                       queue_stats const& stats) {
  job_explanation out;
  auto const say = [&out](char const* code, std::string text) {
    out.because.push_back({code, std::move(text)});
  };
  known_workers known;
  if (j.state == job_state::leased) known = co_await find_workers(q);
  switch (j.state) {
    case job_state::completed: say("ended", "It was completed, and does not run again."); break;
    case job_state::cancelled: say("ended", "It was cancelled, and does not run again."); break;
    case job_state::dead:
      say("ended",
          "It is a dead letter, and runs again only if it is replayed. Reason: " + shown.reason);
      if (j.strategy != unique_strategy::none) {
        out.unknown.emplace_back("whether its unique key is free, as a replay needs it");
      }
      break;
    case job_state::leased:
      say("leased", "A worker, " + j.holder + ", has it for " + time_text(j.vests_in) +
                        " more, unless the lease is extended. If the worker has died, another one "
                        "gets it then.");
      if (!j.progress.empty()) say("progress", "It has come to " + shown.progress);
      if (holds_while_running(j.strategy)) {
        say("leased_unique",
            "It has a unique key: its handler starts when no other job of that key "
            "runs.");
      }
      explain_holder(known, j.holder, out);
      break;
    case job_state::pending: {
      // At once: these two are the questions whose answers are long.
      using namespace boost::asio::experimental::awaitable_operators;
      auto waiting = explain_waiting(q, name, j, shown, stats, out);
      auto finding = find_workers(q);
      auto both = std::move(waiting) && std::move(finding);
      known = co_await std::move(both);
      bool const waits = j.vests_in <= duration{} && !stats.paused;
      auto const* const kind =
          explain_workers(known, q.get_store().shard_count(), name, j, waits, out);
      if (kind != nullptr) {
        co_await explain_limits(q, j, *kind, out);
      } else {
        out.unknown.emplace_back(
            "whether a limit refuses it (its key is the kind, unless its program "
            "says otherwise)");
      }
    }
  }
  co_return out;
}

}  // namespace weir::detail

#endif
