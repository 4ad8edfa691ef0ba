// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"
#include "weir/command/jobs.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Changes in queues from one look to the next: the differences of their counts, and the dead
// letters that are new.
namespace console {

namespace {

constexpr std::uint32_t page_size = 200;
constexpr std::size_t most_queues = 1000;
constexpr int most_pages = 250;  // of dead letters that are there at the beginning

/// A queue as it was at the last look.
struct watched {
  std::optional<weir::queue_stats> last;
  // A list of dead letters goes on behind a cursor, but the last page gives none. So the last
  // cursor is kept, with the ids that were behind it.
  std::string cursor;
  std::set<weir::job_id> known;
  bool too_many = false;
};

/// The dead letters that have come since the last look.
asio::awaitable<weir::error_code> new_letters(session& s, std::string name, watched& q, int pages,
                                              std::vector<weir::job>& out) {
  bool const begins = pages > 0;  // none of them is new
  for (; pages != 0; --pages) {
    auto [ec, page] = co_await s.queue.async_list_dead_letters(name, page_size, q.cursor, as_value);
    if (ec) co_return ec;
    std::set<weir::job_id> here;
    for (auto& j : page.jobs) {
      here.insert(j.id);
      if (!begins && !q.known.contains(j.id)) out.push_back(std::move(j));
    }
    q.known = std::move(here);
    if (page.cursor.empty()) co_return ec;
    q.cursor = page.cursor;
    q.known.clear();
  }
  q.too_many = true;
  co_return weir::error_code{};
}

std::uint64_t more_than(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;  // a purge makes some counts less
}

void tell(session& s, std::string const& name, weir::queue_stats const& a,
          weir::queue_stats const& b, std::vector<weir::job> const& letters, bool without) {
  auto const enqueued = more_than(a.enqueued, b.enqueued);
  auto const completed = more_than(a.completed, b.completed);
  auto const cancelled = more_than(a.cancelled, b.cancelled);
  auto const dead = without ? more_than(a.dead, b.dead) : letters.size();
  if (enqueued + completed + cancelled + dead == 0) return;
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &parts);
  auto reasons = json::array();
  std::string text = std::string{time + 11, 8} + "  " + name;
  for (auto const& [n, word] : {std::pair{enqueued, "enqueued"}, std::pair{completed, "completed"},
                                std::pair{cancelled, "cancelled"}, std::pair{dead, "dead"}}) {
    if (n != 0) text += "  " + std::string{word} + " +" + count_text(n);
  }
  std::map<std::string, std::uint64_t> counted;
  for (auto const& j : letters) {
    if (++counted[j.reason] == 1) reasons.push_back(j.reason);
  }
  for (auto const& [reason, n] : counted) {
    text += (n == 1 ? ": " : ": " + count_text(n) + " x ") + reason;
  }
  auto object = json_of({text_cell("time", time), text_cell("queue", name)});
  object.update(
      {{"enqueued", enqueued}, {"completed", completed}, {"cancelled", cancelled}, {"dead", dead}});
  add_member(object, "reasons", std::move(reasons));
  s.out.line(text, object);
}

/// The names of all queues but those that weir keeps for itself.
asio::awaitable<weir::error_code> all_queues(session& s, std::vector<std::string>& out) {
  for (std::uint32_t shard = 0; shard != s.store.shard_count(); ++shard) {
    std::string cursor;
    do {
      auto const [ec, page] =
          co_await s.queue.async_list_queues(shard, most_queues, cursor, as_value);
      if (ec) co_return ec;
      for (auto const& name : page.queues) {
        if (!weir::is_kept_by_weir(name)) out.push_back(name);
      }
      cursor = page.cursor;
      if (out.size() > most_queues)
        throw failure{refused, "there are more than 1,000 queues: name some"};
    } while (!cursor.empty());
  }
  co_return weir::error_code{};
}

}  // namespace

answer tail_queues(session& s) {
  using clock = std::chrono::steady_clock;
  s.ends_by_itself = true;
  std::map<std::string, watched> queues;
  bool first = true;
  auto at = clock::now();
  for (auto left = s.o.count; !s.stopping; first = false) {
    auto names = s.o.names;
    if (names.empty()) {
      if (auto const ec = co_await all_queues(s, names)) co_return s.fail(ec);
    }
    for (auto const& name : names) {
      auto& q = queues[name];
      auto const [ec, now] = co_await s.queue.async_stats(name, as_value);
      if (ec) co_return s.fail(ec);
      // A queue that appears had nothing before.
      bool const begins = !q.last && first;
      auto const before = q.last.value_or(begins ? now : weir::queue_stats{});
      std::vector<weir::job> letters;
      if ((begins || now.dead != before.dead || now.purged != before.purged) && !q.too_many) {
        auto const failed = co_await new_letters(s, name, q, begins ? most_pages : -1, letters);
        if (failed) co_return s.fail(failed);
      }
      if (!begins) tell(s, name, before, now, letters, q.too_many);
      q.last = now;
    }
    if (!std::cout) {
      pollfd reader{STDOUT_FILENO, 0, 0};
      if (::poll(&reader, 1, 0) == 1) std::cout.clear();  // it has gone, which is no failure
      co_return done;
    }
    if (!first && left && --*left == 0) co_return done;
    at = std::max(at + std::chrono::duration_cast<clock::duration>(s.o.every), clock::now());
    s.pause.expires_at(at);
    if (!s.stopping) co_await s.pause.async_wait(as_value);
  }
  co_return interrupted;
}

}  // namespace console
