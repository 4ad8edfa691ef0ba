// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_EXPLAIN_HPP
#define WEIR_CONSOLE_EXPLAIN_HPP

#include "weir/command/jobs.hpp"
#include "weir/console/asking.hpp"
#include "weir/console/text.hpp"
#include "weir/job.hpp"
#include "weir/unique.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Why a job does not run, and until when.
struct explanation {
  std::vector<std::pair<std::string, std::string>> because;  ///< a code, and a sentence
  std::vector<std::string> unknown;                          ///< what only workers know
};

/// Whether the queue of a job is held back by a snooze, since it has a due job and is in no scan.
/// Empty: it is not to be found out among so many queues.
inline boost::asio::awaitable<std::optional<bool>> is_held_back(console_queue q, std::string name) {
  constexpr std::uint32_t most = 1000;
  for (std::uint32_t shard = 0; shard != q.get_store().shard_count(); ++shard) {
    auto const [ec, due] = co_await q.async_scan_visible_queues(shard, most, as_value);
    if (ec || due.next_in <= duration{}) co_return std::nullopt;  // there are more of them
    if (std::ranges::find(due.queues, name) != due.queues.end()) co_return false;
  }
  co_return true;
}

/// A job of the same unique key that is leased, among up to 1,000 leased ones.
inline boost::asio::awaitable<std::optional<job>> running_twin(console_queue q, std::string name,
                                                               job const& j) {
  auto const [ec, page] = co_await q.async_list(name, job_state::leased, 1000, {}, as_value);
  for (auto const& other : page.jobs) {
    if (!ec && other.id != j.id && other.unique_key == j.unique_key) co_return other;
  }
  co_return std::nullopt;
}

/// Explains a job that waits.
inline boost::asio::awaitable<void> explain_waiting(console_queue q, std::string name, job const& j,
                                                    job const& shown, queue_stats const& stats,
                                                    explanation& out) {
  auto const say = [&out](char const* code, std::string text) {
    out.because.emplace_back(code, std::move(text));
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
                       " times, as a limit refused it or they have no handler for it.");
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
          "The queue is held back for a time, as a limit of all its jobs was reached.");
    }
  }
  if (holds_while_waiting(j.strategy)) {
    say("unique", "It has the unique key " + shown.unique_key + ", " +
                      std::string{to_string(j.strategy)} +
                      ", which refuses others and not this one.");
  }
  if (needs_start(j.strategy)) {
    if (auto const other = co_await running_twin(q, name, j)) {
      say("key_taken", "Job " + to_string(other->id) +
                           " has the same unique key, and is leased for " +
                           time_text(other->vests_in) + " more.");
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

/// Explains a job by two to five questions.
///
/// @param j     as the store has it
/// @param shown what of it may be read by people
inline boost::asio::awaitable<explanation> explain(console_queue q, std::string name, job const& j,
                                                   job const& shown, queue_stats const& stats) {
  explanation out;
  auto const say = [&out](char const* code, std::string text) {
    out.because.emplace_back(code, std::move(text));
  };
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
      out.unknown.emplace_back("whether its worker lives");
      break;
    case job_state::pending:
      co_await explain_waiting(q, name, j, shown, stats, out);
      out.unknown.emplace_back("whether a worker serves this queue, with a handler for " + j.kind);
      out.unknown.emplace_back(
          "whether a limit refuses it (its key is the kind, unless its program "
          "says otherwise)");
  }
  co_return out;
}

}  // namespace weir::detail

#endif
