// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"
#include "weir/unique.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Why a job does not run: all that its record and its queue say. What only workers know is named as
// such, since an explanation with a gap that nobody sees is worse than none.
namespace console {

namespace {

using reasons = std::vector<std::pair<std::string, std::string>>;  // a code, and a sentence

/// Is the whole queue put off? No command says so, but a scan leaves such a queue out.
asio::awaitable<std::optional<bool>> is_held_back(session& s) {
  constexpr std::uint32_t most = 1000;
  for (std::uint32_t shard = 0; shard != s.store.shard_count(); ++shard) {
    auto const [ec, due] = co_await s.queue.async_scan_visible_queues(shard, most, as_value);
    if (ec || due.next_in <= weir::duration{}) co_return std::nullopt;  // there are more of them
    if (std::ranges::find(due.queues, s.o.queue) != due.queues.end()) co_return false;
  }
  co_return true;
}

/// Another job that runs and has the same unique key, among the first that are leased.
asio::awaitable<std::optional<weir::job>> running_twin(session& s, weir::job const& j) {
  auto const [ec, page] =
      co_await s.queue.async_list(s.o.queue, weir::job_state::leased, 1000, {}, as_value);
  for (auto const& other : page.jobs) {
    if (!ec && other.id != j.id && other.unique_key == j.unique_key) co_return other;
  }
  co_return std::nullopt;
}

reasons reasons_of_end(weir::job const& j) {
  switch (j.state) {
    case weir::job_state::completed:
      return {{"ended", "It was completed, and does not run again."}};
    case weir::job_state::cancelled:
      return {{"ended", "It was cancelled, and does not run again."}};
    default:
      return {{"ended",
               "It is a dead letter, and runs again only if it is replayed. Reason: " + j.reason}};
  }
}

reasons reasons_of_lease(weir::job const& j) {
  reasons out{{"leased", "A worker, " + j.holder + ", has it for " + time_text(j.vests_in) +
                             " more, unless the lease is extended. If the worker has died, another "
                             "one gets it then."}};
  if (!j.progress.empty()) out.emplace_back("progress", "It has come to " + j.progress);
  if (weir::holds_while_running(j.strategy)) {
    out.emplace_back("leased_unique", "It has a unique key: its handler starts when no other job "
                                      "of that key runs.");
  }
  return out;
}

asio::awaitable<reasons> reasons_to_wait(session& s, weir::job const& j,
                                         weir::queue_stats const& q) {
  reasons out;
  bool const visible = j.vests_in <= weir::duration{};
  if (j.attempts >= j.max_attempts) {
    out.emplace_back("attempts_spent", "All of its attempts are spent: the next worker that finds "
                                       "it makes it a dead letter.");
  }
  if (j.deadline_in && *j.deadline_in <= weir::duration{}) {
    out.emplace_back("deadline_missed", "Its deadline has passed: the next worker that finds it "
                                        "makes it a dead letter.");
  }
  if (!visible) out.emplace_back("not_due", "It is due in " + time_text(j.vests_in) + ".");
  if (!visible && !j.memo.empty()) {
    out.emplace_back("put_off", "A worker put it off, and noted: " + j.memo);
  } else if (!visible && j.snoozes != 0) {
    out.emplace_back("put_off",
                     "Workers have put it off " + count_text(j.snoozes) +
                         " times, as a limit refused it or they have no handler for it.");
  }
  if (j.attempts != 0 && !j.reason.empty()) {
    out.emplace_back("failed", "Attempt " + count_text(j.attempts) + " of " +
                                   count_text(j.max_attempts) + " failed: " + j.reason);
  }
  if (q.paused) {
    out.emplace_back("queue_paused", "The queue is paused, until weirctl resume.");
  } else if (q.next_in && *q.next_in <= weir::duration{}) {
    auto const held = co_await is_held_back(s);
    if (held.value_or(false)) {
      out.emplace_back("queue_held",
                       "The queue is held back for a time, as a limit of all its jobs "
                       "was reached.");
    }
  }
  if (weir::holds_while_waiting(j.strategy)) {
    out.emplace_back("unique", "It has the unique key " + j.unique_key + ", " +
                                   std::string{to_string(j.strategy)} +
                                   ", which refuses others and not this one.");
  }
  if (weir::needs_start(j.strategy)) {
    if (auto const other = co_await running_twin(s, j)) {
      out.emplace_back("key_taken", "Job " + to_string(other->id) +
                                        " has the same unique key, and is leased for " +
                                        time_text(other->vests_in) + " more.");
    }
  }
  if (!visible) co_return out;
  auto const [ec, first] = co_await s.queue.async_peek(s.o.queue, 1, as_value);
  if (!ec && !first.empty() && first.front().id != j.id) {
    out.emplace_back("not_first",
                     "It is due, and others of the queue are before it: the first is " +
                         to_string(first.front().id) + ".");
  } else if (!ec && !first.empty()) {
    out.emplace_back("first", "It is due, and the first of its queue.");
  }
  co_return out;
}

}  // namespace

answer explain_job(session& s) {
  auto const id = to_id(s.o.ids.front());
  auto const [failed, found] = co_await s.queue.async_find(s.o.queue, id, as_value);
  if (failed) co_return s.fail(failed);
  auto const [ec, stats] = co_await s.queue.async_stats(s.o.queue, as_value);
  if (ec) co_return s.fail(ec);
  if (!found) {
    co_return s.refuse(stats.enqueued == 0
                           ? "this queue has never had a job: is its name right?"
                           : "there is no record of it in this queue: it was never there, or has "
                             "ended and its retention is over, or was purged");
  }
  auto const& j = *found;
  reasons why;
  std::vector<std::string> unknown;
  if (weir::is_terminal(j.state)) {
    why = reasons_of_end(j);
    if (j.state == weir::job_state::dead && j.strategy != weir::unique_strategy::none) {
      unknown.emplace_back("whether its unique key is free, as a replay needs it");
    }
  } else if (j.state == weir::job_state::leased) {
    why = reasons_of_lease(j);
    unknown.emplace_back("whether its worker lives");
  } else {
    why = co_await reasons_to_wait(s, j, stats);
    unknown.emplace_back("whether a worker serves this queue, with a handler for " + j.kind);
    unknown.emplace_back(
        "whether a limit refuses it (weirctl limits KEY shows one; KEY is the kind, "
        "unless its program says otherwise)");
  }
  bool const waits = !weir::is_terminal(j.state);
  if (s.out.is_json()) {
    auto because = json::array();
    for (auto const& [code, text] : why) because.push_back({{"code", code}, {"text", text}});
    s.out.add({word_cell("id", to_string(j.id)),
               text_cell("kind", j.kind),
               word_cell("state", to_string(j.state)),
               due_cell("due", waits ? std::optional{j.vests_in} : std::nullopt),
               {"because", std::move(because), {}},
               {"unknown", unknown, {}}});
    co_return done;
  }
  s.out.paragraph("", "Job " + to_string(j.id) + " of kind " + j.kind + " is " +
                          std::string{to_string(j.state)} + ".");
  for (auto const& [code, text] : why) s.out.paragraph("- ", text);
  for (auto const& text : unknown) s.out.paragraph("? ", "Not known here: " + text);
  co_return done;
}

}  // namespace console
