// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"
#include "weir/command/buckets.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/execute.hpp"
#include "weir/job_headers.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/registered_worker.hpp"
#include "weir/schedules.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

// The commands that change nothing. Each asks for a page at a time.
namespace console {

namespace {

constexpr std::size_t shown_bytes = 200;  // of a text, unless it is wanted whole
constexpr int most_pages = 5;             // asked for by one listing, of 1,000 records each

constexpr std::array states{weir::job_state::pending, weir::job_state::leased,
                            weir::job_state::dead, weir::job_state::completed,
                            weir::job_state::cancelled};

weir::job_state to_state(std::string_view name) {
  auto const* const found =
      std::ranges::find(states, name, [](auto state) { return to_string(state); });
  if (found == states.end()) throw failure{wrong_usage, "--cursor is none that a page gave"};
  return *found;
}

using weir::detail::due_of;
using weir::detail::note_text;
using weir::detail::progress_text;

row row_of(weir::job const& j) {
  return {word_cell("id", to_string(j.id)),       text_cell("kind", j.kind),
          word_cell("state", to_string(j.state)), number_cell("attempts", j.attempts),
          due_cell("due", due_of(j), brief_text), hidden(time_cell("age", j.age)),
          text_cell("note", note_text(j))};
}

row row_of(weir::registered_worker const& w) {
  auto queues = json::array();
  for (auto const& q : w.queues) {
    queues.push_back({{q.name.empty() ? "prefix" : "name", q.name.empty() ? q.prefix : q.name},
                      {"weight", q.weight},
                      {"concurrency", q.concurrency}});
  }
  auto kinds = json::array();
  for (auto const& k : w.kinds) kinds.push_back(k.kind);
  auto jobs = json::array();
  for (auto const& j : w.jobs) {
    jobs.push_back({{"queue", j.queue},
                    {"id", to_string(j.id)},
                    {"kind", j.kind},
                    {"took", std::chrono::duration<double>(j.took).count()}});
  }
  auto state = word_cell("state", !w.seems_alive() ? "gone" : w.stopping ? "stopping" : "running");
  auto busy = number_cell("busy", w.busy);
  busy.text += "/" + count_text(w.concurrency);
  return {text_cell("name", w.name),
          std::move(state),
          time_cell("seen", w.seen),
          time_cell("up", weir::detail::up_of(w)),
          std::move(busy),
          hidden(number_cell("concurrency", w.concurrency)),
          {"queues", std::move(queues), weir::detail::served_text(w)},
          {"kinds", std::move(kinds), weir::detail::kinds_text(w)},
          hidden(text_cell("holder", w.holder)),
          hidden({"shards", w.shards, {}}),
          hidden({"jobs", std::move(jobs), {}}),
          hidden(flag_cell("whole", w.is_whole))};
}

asio::awaitable<bool> is_known(session& s, std::string const& name) {
  auto const [ec, stats] = co_await s.queue.async_stats(name, as_value);
  co_return ec || stats.enqueued != 0 || stats.paused;
}

cell long_cell(std::string name, std::string_view text, bool whole) {
  auto shown = text;
  if (!whole && text.size() > shown_bytes) {
    auto end = shown_bytes;  // not within a character
    while (end != 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    shown = text.substr(0, end);
  }
  auto out = text_cell(std::move(name), shown);
  out.whole = whole;
  if (shown.size() != text.size()) out.text += " (of " + count_text(text.size()) + " bytes)";
  return out;
}

row everything_of(weir::job const& j, bool whole) {
  bool const leased = j.state == weir::job_state::leased;
  row out{word_cell("id", to_string(j.id)),
          text_cell("kind", j.kind),
          word_cell("state", to_string(j.state)),
          number_cell("priority", j.priority),
          number_cell("attempts", j.attempts),
          number_cell("max_attempts", j.max_attempts),
          number_cell("snoozes", j.snoozes),
          due_cell("due", leased ? std::nullopt : due_of(j)),
          text_cell("holder", j.holder),
          due_cell("lease_ends", leased ? due_of(j) : std::nullopt),
          time_cell("age", j.age),
          due_cell("deadline", j.deadline_in),
          word_cell("unique", to_string(j.strategy)),
          text_cell("unique_key", j.unique_key),
          word_cell("on_conflict", to_string(j.on_conflict))};
  if (leased) {
    out.push_back({"fence", j.fence, std::to_string(j.fence)});
  }
  if (j.strategy == weir::unique_strategy::none) {
    for (auto& c : out) {
      if (c.name == "unique" || c.name == "on_conflict") c.text.clear();
    }
  }
  auto headers = json::object();
  std::string header_text;
  for (auto const& [name, value] : weir::job_headers_view{j.headers}) {
    headers[std::string{name}] = value;
    header_text.append(header_text.empty() ? "" : ", ").append(name).append(": ").append(value);
  }
  out.push_back({"headers", std::move(headers), std::move(header_text)});
  auto progress = text_cell("progress", j.progress);
  progress.text = progress_text(j.progress);
  out.push_back(std::move(progress));
  auto checkpoint = number_cell("checkpoint_bytes", j.checkpoint.size());
  if (j.checkpoint.empty()) checkpoint.text.clear();
  out.push_back(std::move(checkpoint));
  out.push_back(long_cell("memo", j.memo, true));
  out.push_back(long_cell("reason", j.reason, true));
  out.push_back(long_cell("result", j.result, whole));
  out.push_back(number_cell("payload_bytes", j.payload.size()));
  out.push_back(long_cell("payload", j.payload, whole));
  return out;
}

}  // namespace

answer list_jobs(session& s) {
  auto const& o = s.o;
  // A cursor names the state that it is in, since all are listed one after the other.
  auto const colon = o.cursor.find('.');
  auto const* state = std::ranges::find(
      states, o.cursor.empty() ? (o.state.empty() ? states.front() : to_state(o.state))
                               : to_state(o.cursor.substr(0, colon)));
  auto cursor = colon == o.cursor.npos ? std::string{} : o.cursor.substr(colon + 1);
  auto const* const end = o.state.empty() ? states.end() : state + 1;
  std::uint32_t shown = 0;
  for (int pages = 0; state != end && shown != o.limit && pages != most_pages; ++pages) {
    auto const [ec, page] =
        co_await s.queue.async_list(o.queue, *state, o.limit - shown, cursor, as_value);
    if (ec) co_return s.fail(ec);
    for (auto const& j : page.jobs) s.out.add(row_of(j));
    shown += static_cast<std::uint32_t>(page.jobs.size());
    cursor = page.cursor;
    if (cursor.empty()) ++state;
  }
  s.out.end_table();
  if (state != end) s.out.more(std::string{to_string(*state)} + "." + cursor);
  if (shown != 0 || state != end || co_await is_known(s, o.queue)) co_return done;
  co_return s.refuse("there is no queue '" + o.queue + "'");
}

answer list_dead(session& s) {
  auto const& o = s.o;
  auto const [ec, page] =
      co_await s.queue.async_list_dead_letters(o.queue, o.limit, o.cursor, as_value);
  if (ec) co_return s.fail(ec);
  for (auto const& j : page.jobs) {
    s.out.add({word_cell("id", to_string(j.id)), text_cell("kind", j.kind),
               number_cell("attempts", j.attempts), time_cell("age", j.age),
               text_cell("reason", j.reason)});
  }
  s.out.end_table();
  s.out.more(page.cursor);
  if (!page.jobs.empty() || co_await is_known(s, o.queue)) co_return done;
  co_return s.refuse("there is no queue '" + o.queue + "'");
}

answer show_job(session& s) {
  auto const id = to_id(s.o.ids.front());
  auto const [ec, found] = co_await s.queue.async_find(s.o.queue, id, as_value);
  if (ec) co_return s.fail(ec);
  if (!found) co_return s.refuse("there is no record of it in this queue: see weirctl explain");
  s.out.show(everything_of(*found, s.o.payload));
  co_return done;
}

answer list_queues(session& s) {
  auto const& o = s.o;
  auto const page = co_await weir::detail::list_queues(s.queue, o.under, o.limit, o.cursor);
  if (page.has_error()) co_return s.fail(page.error());
  for (auto const& [name, q] : page->queues) {
    s.out.add({text_cell("queue", name), number_cell("pending", q.pending),
               number_cell("leased", q.leased), number_cell("dead", q.dead),
               number_cell("completed", q.completed), number_cell("cancelled", q.cancelled),
               flag_cell("paused", q.paused), due_cell("due", q.next_in, brief_text)});
  }
  s.out.end_table();
  s.out.more(page->cursor);
  if (page->queues.empty() && page->cursor.empty() && o.cursor.empty()) {
    co_return s.refuse(o.under.empty() ? "there is no queue in this store"
                                       : "there is no queue under '" + o.under + "'");
  }
  co_return done;
}

answer list_workers(session& s) {
  auto const& o = s.o;
  auto const page = co_await weir::detail::list_workers(s.queue, o.limit, o.cursor);
  if (page.has_error()) co_return s.fail(page.error());
  for (auto const& w : page->workers) s.out.add(row_of(w));
  s.out.end_table();
  s.out.more(page->cursor);
  if (!page->workers.empty() || !page->cursor.empty() || !o.cursor.empty()) co_return done;
  co_return s.refuse("no worker is registered: those are that have a name (worker_options::name)");
}

answer show_limits(session& s) {
  for (auto const& key : s.o.names) {
    weir::command::inspect_permits const look{.key = key, .limit = s.o.limit};
    auto const [ec, census] = co_await weir::async_execute(s.store, look, as_value);
    if (ec) co_return s.fail(ec);
    auto const head = row{text_cell("key", key), number_cell("in_use", census.in_use),
                          number_cell("waiting", census.waiting)};
    auto holders = census.holders;
    if (holders.empty()) holders.emplace_back();  // a row for the key all the same
    for (auto const& h : holders) {
      auto cells = head;
      bool const nobody = h.holder.empty();
      cells.push_back(text_cell("holder", h.holder));
      cells.push_back(due_cell("expires", nobody ? std::nullopt : std::optional{h.expires_in}));
      s.out.add(std::move(cells));
    }
  }
  s.out.end_table();
  co_return done;
}

answer show_locks(session& s) {
  for (auto const& key : s.o.names) {
    weir::command::inspect_lock const look{.key = key};
    auto const [ec, lock] = co_await weir::async_execute(s.store, look, as_value);
    if (ec) co_return s.fail(ec);
    auto held = flag_cell("held", lock.held);
    if (!lock.held) held.text = "no";
    s.out.add({text_cell("key", key), std::move(held), text_cell("holder", lock.holder),
               due_cell("expires", lock.held ? std::optional{lock.expires_in} : std::nullopt)});
  }
  s.out.end_table();
  co_return done;
}

answer show_buckets(session& s) {
  auto rate = weir::quota::per(s.o.tokens, s.o.period);
  if (s.o.burst != 0) rate = rate.burst(s.o.burst);
  for (auto const& key : s.o.names) {
    auto const digest = weir::sha256_key{}(key);  // as a rate_limiter has it, unless told otherwise
    weir::command::peek_bucket const look{.key = digest.view(), .quotas = {&rate, 1}};
    auto const [ec, level] = co_await weir::async_execute(s.store, look, as_value);
    if (ec) co_return s.fail(ec);
    auto allowed = flag_cell("allowed", level.allowed);
    if (!level.allowed) allowed.text = "no";
    s.out.add({text_cell("key", key), number_cell("tokens", level.remaining),
               number_cell("capacity", level.capacity), std::move(allowed),
               due_cell("again", level.allowed ? std::nullopt : std::optional{level.retry_after}),
               due_cell("full", level.reset_after)});
  }
  s.out.end_table();
  co_return done;
}

answer list_schedules(session& s) {
  weir::schedules<any_store> const schedules{s.store};
  auto cursor = s.o.cursor;
  std::uint32_t shown = 0;
  do {
    auto const room = std::min<std::uint32_t>(s.o.limit - shown, weir::limits::batch);
    auto const [ec, page] = co_await schedules.async_list(room, cursor, as_value);
    if (ec) co_return s.fail(ec);
    cursor = page.cursor;
    auto const now = weir::system_clock::system_now();
    for (auto const& x : page.schedules) {
      std::optional<weir::duration> next;
      if (x.progress.next && !x.paused) next = weir::saturating_sub(*x.progress.next, now);
      s.out.add({text_cell("name", x.definition.name),
                 text_cell("when", weir::detail::when_text(x.definition)),
                 due_cell("next", next, brief_text), flag_cell("paused", x.paused),
                 text_cell("queue", x.job.queue), hidden(text_cell("kind", x.job.kind)),
                 number_cell("fired", x.progress.fired),
                 hidden(number_cell("skipped", x.progress.skipped)),
                 number_cell("missed", x.progress.missed)});
    }
    shown += static_cast<std::uint32_t>(page.schedules.size());
  } while (!cursor.empty() && shown < s.o.limit);
  s.out.end_table();
  s.out.more(cursor);
  if (shown != 0 || !s.o.cursor.empty()) co_return done;
  co_return s.refuse("there is no schedule in this store");
}

}  // namespace console
