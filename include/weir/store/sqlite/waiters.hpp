// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_WAITERS_HPP
#define WEIR_STORE_SQLITE_WAITERS_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/hint_line.hpp"
#include "weir/error.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/permits.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/store/sqlite/tables.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Operations that wait for a hint. They are told by what this process commits, and, by polling, by
/// what others do. For the thread of the store.
class sqlite_waiters {
 public:
  [[nodiscard]] bool for_permits() const noexcept { return !lines_.empty(); }
  [[nodiscard]] bool for_jobs() const noexcept { return !scans_.empty(); }
  /// Is the cancel of a job, which is rare, all that anybody waits for?
  [[nodiscard]] bool for_cancels_only() const noexcept { return lines_.empty() && scans_.empty(); }
  [[nodiscard]] bool empty() const noexcept { return for_cancels_only() && cancels_.empty(); }

  /// Says what is to be noted in a transaction.
  void watch(sqlite_events& events) const {
    events.lines_watched = for_permits();
    events.queues_watched = for_jobs();
    for (auto const& [scan, all] : scans_) events.scans_watched.insert(scan);
  }

  void add(std::string_view key, rule::occupant const& ticket, hint_waiter w) {
    auto& line = lines_[std::string{key}];
    // A holder that polls leaves one cancelled operation behind each time.
    auto [it, end] = line.waiting.equal_range(ticket.number);
    while (it != end) it = it->second.operation->waiting() ? std::next(it) : line.waiting.erase(it);
    line.waiting.emplace(ticket.number, in_line{ticket.holder, std::move(w)});
    line.top_limit = std::max(line.top_limit, ticket.limit);
  }

  void add(std::uint32_t scan, std::optional<time_point> first_due, hint_waiter w) {
    auto& all = scans_[scan];
    all.waiting.add(std::move(w));
    all.first_due = first_due;
  }

  /// @param cancels how many there were when it began to wait
  void add(std::string_view holder, std::uint64_t cancels, hint_waiter w) {
    if (cancels_.empty()) cancels_seen_ = cancels;
    cancels_.add(holder, std::move(w));
  }

  /// After a commit of this process: wakes whom it concerns.
  void settle(sqlite_tables& tables) {
    auto const& events = tables.events();
    for (auto const& holder : events.cancelled) cancels_.take(holder).wake_all();
    cancels_seen_ += events.cancelled.size();
    for (auto const& key : events.lines) {
      if (auto const line = lines_.find(key); line != lines_.end()) {
        settle(line, tables, tables.latest());
      }
    }
    for (auto it = scans_.begin(); it != scans_.end();) {
      auto const due = events.due.find(it->first);
      auto const woken = due == events.due.end() ? 0 : due->second;
      for (auto n = woken; n != 0; --n) wake_one(it->second);
      // As it was committed: what others have made earlier since is still to be noticed, and what
      // they made earlier before is noticed here.
      auto const first = events.first_due.find(it->first);
      if (first != events.first_due.end()) {
        if (woken == 0 && is_earlier(first->second, it->second.first_due)) wake_one(it->second);
        it->second.first_due = first->second;
      }
      it = it->second.waiting.empty() ? scans_.erase(it) : std::next(it);
    }
  }

  /// When others may have committed, in a transaction: wakes whom that may concern. Returns whether
  /// it is to be called again, whether or not others commit.
  bool look_around(sqlite_tables& tables) {
    auto const now = tables.now();
    for (auto line = lines_.begin(); line != lines_.end();) {
      auto const next = std::next(line);
      settle(line, tables, now);
      line = next;
    }
    // The count does not tell whose job was cancelled, so all are woken.
    if (std::exchange(cancels_seen_, tables.cancels()) != tables.cancels()) {
      cancels_.wake_all();
      woke_ = true;
    }
    bool again = false;
    for (auto it = scans_.begin(); it != scans_.end();) {
      auto& all = it->second;
      auto const first = tables.jobs().first_due(it->first);
      bool const due = first && rule::job_visible(*first, now);
      if (due || is_earlier(first, all.first_due)) wake_one(all);
      all.first_due = first;
      // There may be more of them than one can serve; but one at a time, so that it is no herd.
      again = again || (due && !all.waiting.empty());
      it = all.waiting.empty() ? scans_.erase(it) : std::next(it);
    }
    return again;
  }

  /// Was anybody woken since it was asked last?
  [[nodiscard]] bool woke() noexcept { return std::exchange(woke_, false); }

  /// Forgets who has been cancelled.
  void prune() {
    for (auto& [key, line] : lines_) {
      std::erase_if(line.waiting, [](auto const& w) { return !w.second.operation->waiting(); });
    }
    std::erase_if(lines_, [](auto const& line) { return line.second.waiting.empty(); });
    for (auto& [scan, all] : scans_) all.waiting.drop_ended();
    std::erase_if(scans_, [](auto const& s) { return s.second.waiting.empty(); });
    cancels_.drop_ended();
  }

  /// Ends all of them.
  void fail(error_code ec) {
    for (auto& [key, line] : lines_) {
      for (auto& [turn, w] : line.waiting) wake(w.operation, ec);
    }
    for (auto& [scan, all] : scans_) all.waiting.wake_all(ec);
    cancels_.wake_all(ec);
    lines_.clear();
    scans_.clear();
  }

 private:
  struct in_line {
    std::string holder;
    hint_waiter operation;
  };
  struct waiting_line {
    std::multimap<std::uint64_t, in_line> waiting{};  // by the turn of their tickets
    std::uint32_t top_limit = 0;                      // no waiter's ticket had a higher one
  };
  using lines = std::map<std::string, waiting_line>;

  struct waiting_scan {
    hint_line waiting{};
    std::optional<time_point> first_due{};
  };

  static bool is_earlier(std::optional<time_point> first, std::optional<time_point> known) {
    return first && (!known || *first < *known);
  }

  void wake_one(waiting_scan& all) noexcept { woke_ = all.waiting.wake_one() || woke_; }
  void wake_turn(hint_waiter const& w) noexcept { woke_ = wake(w) || woke_; }

  /// Wakes exactly those whose turn has come, or whose ticket is gone, each once: who asks again is
  /// granted or waits anew (F10). A free permit that the first in line was told of is its own until
  /// its ticket lapses, so nobody else is told of it.
  void settle(lines::iterator at, sqlite_tables& tables, time_point now) {
    auto& waiting = at->second.waiting;
    try {
      settle(at->first, at->second, tables, now);
    } catch (sqlite_damage const&) {  // whoever asks again is told, and no other line waits for it
      for (auto& [turn, w] : waiting) wake_turn(w.operation);
      waiting.clear();
    }
    if (waiting.empty()) lines_.erase(at);
  }

  void settle(std::string const& key, waiting_line& line, sqlite_tables& tables, time_point now) {
    auto& waiting = line.waiting;
    tables.permits().look(key, now, [&, top = line.top_limit](rule::permit_line const& l) {
      for (auto it = waiting.begin(); it != waiting.end();) {
        auto const* const ticket = l.tickets.find(it->first);
        bool const its_own = ticket != nullptr && ticket->holder == it->second.holder;
        auto const ahead = its_own ? l.tickets.before(*ticket) : 0;
        if (its_own && !rule::is_turn(l, ahead, top)) break;
        if (!its_own || rule::is_turn(l, ahead, ticket->limit)) {
          wake_turn(it->second.operation);
          it = waiting.erase(it);
        } else {
          ++it;
        }
      }
    });
  }

  lines lines_;
  std::map<std::uint32_t, waiting_scan> scans_;
  cancel_lines cancels_;
  std::uint64_t cancels_seen_ = 0;
  bool woke_ = false;
};

}  // namespace weir::detail

#endif
