// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_PERMITS_HPP
#define WEIR_STORE_SQLITE_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/detail/string_hash.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/permits.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::detail {

namespace sql {

inline constexpr char read_line[] =
    "SELECT ticket, number, holder, until, lim FROM weir_permits WHERE key = ? "
    "ORDER BY ticket, number";
inline constexpr char insert_occupant[] =
    "INSERT INTO weir_permits (key, ticket, number, holder, until, lim) VALUES (?, ?, ?, ?, ?, ?)";
inline constexpr char update_occupant[] =
    "UPDATE weir_permits SET until = ?, lim = ? WHERE key = ? AND ticket = ? AND number = ?";
inline constexpr char delete_occupant[] =
    "DELETE FROM weir_permits WHERE key IS ? AND ticket IS ? AND number IS ?";
inline constexpr char ended_occupant[] =
    "SELECT key, ticket, number FROM weir_permits INDEXED BY weir_permits_until "
    "WHERE until <= ? ORDER BY until LIMIT 1";
inline constexpr char soonest_occupant[] =
    "SELECT CAST(until AS INTEGER) FROM weir_permits INDEXED BY weir_permits_until "
    "WHERE until >= -9223372036854775807 AND typeof(until) IN ('integer', 'real') "
    "ORDER BY until LIMIT 1";
inline constexpr char delete_occupants[] = "DELETE FROM weir_permits";

}  // namespace sql

/// The permits in the file. The rule decides, on the whole line of a key, and what it has changed
/// of it is written: the rows of one holder, and those that are over.
///
/// A line that was read is kept as long as nobody else changes the file, so that a step costs the
/// rows that it changes, and a key with ten thousand holders no more than one with two.
class sqlite_permits {
 public:
  explicit sqlite_permits(sqlite_scope& in) noexcept : in_{in} {}

  /// Error: `store_full`, and nothing has changed.
  result<permit_grant> apply(command::acquire_permit const& c, time_point now) {
    return act(c, now, [&](rule::permit_line& line) {
      return rule::apply(line, c, now, in_.ledger.fence, [&] { return room(now); });
    });
  }

  /// Error: `lease_lost`.
  result<lease_renewal> apply(command::renew_permit const& c, time_point now) {
    return act(c, now, [&](rule::permit_line& line) { return rule::apply(line, c, now); });
  }

  result<lease_release> apply(command::release_permit const& c, time_point now) {
    return act(c, now, [&](rule::permit_line& line) { return rule::apply(line, c, now); });
  }

  result<permit_census> apply(command::inspect_permits const& c, time_point now) {
    return look(c.key, now, [&](rule::permit_line& line) { return rule::apply(line, c, now); });
  }

  /// Runs `read(permit_line&)` on the key's line as it is at `now`. Changes nothing in the file.
  template <class Read>
  std::invoke_result_t<Read&, rule::permit_line&> look(std::string_view key, time_point now,
                                                       Read&& read) {
    auto& line = find(key);
    if (now < line.soonest()) return read(line);
    // What is over stays where it is, here as in the file: both are changed together or not at all.
    rule::permit_line copy = line;
    rule::expire(copy, now);
    return read(copy);
  }

  /// Removes some of what is over, wherever it is. Returns how many there were.
  std::size_t reap(time_point now, std::size_t most) {
    std::size_t n = 0;
    while (n != most && soonest_.over(now)) {
      auto const ended = sqlite_first<3>(in_.db, sql::ended_occupant, now);
      if (!ended) {
        soonest_.learn(in_.db, sql::soonest_occupant);
        break;
      }
      auto const& [key, ticket, number] = *ended;
      if (!erase(key, ticket, number)) break;
      std::string const text{key.bytes()};
      changed(text);
      if (auto const known = lines_.find(text); known != lines_.end()) {
        forget(known->second, ticket.integer() != 0, static_cast<std::uint64_t>(number.integer()));
      }
      ++n;
    }
    return n;
  }

  /// Ends every permit and ticket.
  void end_all() {
    forget();
    sqlite_run(in_.db, sql::delete_occupants);
    in_.ledger.permits = 0;
  }

  /// Forgets what was read.
  void forget() noexcept {
    soonest_.forget();
    lines_.clear();
  }

  /// Keeps memory bounded. Not within a step.
  void trim() noexcept {
    constexpr std::size_t most_lines = 4096;
    constexpr std::size_t most_occupants = 200'000;
    constexpr std::uint32_t steps_per_count = 256;
    if (lines_.size() > most_lines) return lines_.clear();
    if (++steps_ % steps_per_count != 0) return;
    std::size_t occupants = 0;
    for (auto const& [key, line] : lines_) occupants += line.size();
    if (occupants > most_occupants) lines_.clear();
  }

 private:
  struct entry {
    std::uint64_t number;
    time_point until;
    std::uint32_t limit;
    friend bool operator==(entry const&, entry const&) = default;
  };

  /// What a holder has, before and after a step.
  struct belongings {
    std::optional<entry> permit;
    std::optional<entry> ticket;
  };

  static std::optional<entry> entry_of(rule::occupant const* o) noexcept {
    if (o == nullptr) return std::nullopt;
    return entry{o->number, o->until, o->limit};
  }
  static belongings belongings_of(rule::permit_line const& line, std::string_view holder) noexcept {
    return {entry_of(line.permits.find(holder)), entry_of(line.tickets.find(holder))};
  }

  template <class C, class Step>
  result<typename C::result> act(C const& c, time_point now, Step&& step) {
    auto& line = find(c.key);
    expire(c.key, line, now);
    auto const before = belongings_of(line, c.holder);
    result<typename C::result> answer = step(line);
    auto const after = belongings_of(line, c.holder);
    write(c.key, c.holder, false, before.permit, after.permit);
    write(c.key, c.holder, true, before.ticket, after.ticket);
    if (line.size() == 0) lines_.erase(lines_.find(std::string{c.key}));
    return answer;
  }

  void write(std::string_view key, std::string_view holder, bool ticket,
             std::optional<entry> const& before, std::optional<entry> const& after) {
    if (before == after) return;
    if (after) soonest_.add(after->until);
    if (before && after && before->number == after->number) {
      sqlite_run(in_.db, sql::update_occupant, after->until, after->limit, key, ticket,
                 after->number);
      changed(key);
      return;
    }
    if (before) erase(key, ticket, before->number);
    changed(key);
    if (!after) return;
    sqlite_run(in_.db, sql::insert_occupant, key, ticket, after->number, holder, after->until,
               after->limit);
    ++in_.ledger.permits;
  }

  /// Takes out of a line what was taken out of the file, and no more.
  static void forget(rule::permit_line& line, bool ticket, std::uint64_t number) noexcept {
    auto const from = [&](auto& occupants) {
      if (auto const* const gone = occupants.find(number)) occupants.erase(*gone);
    };
    ticket ? from(line.tickets) : from(line.permits);
  }

  template <class Key, class Ticket, class Number>
  bool erase(Key const& key, Ticket const& ticket, Number const& number) {
    sqlite_run(in_.db, sql::delete_occupant, key, ticket, number);
    auto const n = static_cast<std::uint64_t>(in_.db.changes());
    sqlite_decrease(in_.ledger.permits, n);
    return n != 0;
  }

  void changed(std::string_view key) {
    if (in_.events.lines_watched) in_.events.lines.emplace(key);
  }

  void expire(std::string_view key, rule::permit_line& line, time_point now) {
    if (now < line.soonest()) return;
    std::vector<std::pair<bool, std::uint64_t>> over;
    over.reserve(line.size());  // for what must not throw below
    line.permits.expire(now, [&](auto const& o) { over.emplace_back(false, o.number); });
    line.tickets.expire(now, [&](auto const& o) { over.emplace_back(true, o.number); });
    for (auto const& [ticket, number] : over) erase(key, ticket, number);
    changed(key);
  }

  [[nodiscard]] bool room(time_point now) {
    constexpr std::size_t page = 1000;
    while (in_.ledger.permits >= in_.options.max_permits) {
      if (reap(now, page) == 0) return false;
    }
    return true;
  }

  rule::permit_line& find(std::string_view key) {
    auto const [it, is_new] = lines_.try_emplace(std::string{key});
    if (is_new) {
      try {
        read(key, it->second);
      } catch (...) {
        lines_.erase(it);
        throw;
      }
    }
    return it->second;
  }

  void read(std::string_view key, rule::permit_line& line) {
    sqlite_query q{in_.db, sql::read_line, key};
    while (q.next()) {
      bool const ticket = q.within<bool>(0, 0, 1);
      auto const number = q.within<std::uint64_t>(1, 1, sqlite_most);
      auto const holder = q.bytes(2, 1, limits::holder_size);
      auto const limit = q.within<std::uint32_t>(4, 1, limits::permits);
      auto const add = [&](auto& to) {
        if (to.find(holder) != nullptr) throw sqlite_damage{};
        to.add(holder, number, q.time(3), limit);
      };
      if (ticket) {
        add(line.tickets);
        line.last_turn = number;
      } else {
        add(line.permits);
      }
    }
  }

  sqlite_scope& in_;
  sqlite_soonest<time_point> soonest_;
  std::unordered_map<std::string, rule::permit_line, string_hash> lines_;  // its elements stay
                                                                           // where they are
  std::uint32_t steps_ = 0;
};

}  // namespace weir::detail

#endif
