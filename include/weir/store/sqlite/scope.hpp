// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_SCOPE_HPP
#define WEIR_STORE_SQLITE_SCOPE_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/ledger.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::detail {

/// What a transaction may have made worth asking for again, by other commands of this process.
struct sqlite_events {
  bool lines_watched = false;                                   ///< does anybody wait for a permit,
  bool queues_watched = false;                                  ///< or for jobs?
  boost::unordered_flat_set<std::string, string_hash> lines{};  ///< keys whose permits or tickets
                                                                ///< changed
  std::vector<std::string> cancelled{};  ///< holders whose jobs were cancelled while they ran
  // By the numbers of scans:
  boost::unordered_flat_map<std::uint32_t, std::size_t> due{};  ///< queues that are due earlier
  boost::unordered_flat_set<std::uint32_t> scans_watched{};  ///< of which somebody waits for jobs
  /// When their first queues are due, if anything was changed.
  boost::unordered_flat_map<std::uint32_t, std::optional<time_point>> first_due{};

  void clear() noexcept {
    lines.clear();
    cancelled.clear();
    due.clear();
    scans_watched.clear();
    first_due.clear();
  }
};

/// The first time in an index, as far as it is known: nothing in it is over before. Saves asking.
template <class Time>
class sqlite_soonest {
 public:
  /// Can anything be over?
  [[nodiscard]] bool over(Time now) const noexcept { return !first_ || *first_ <= now; }
  /// Asks for the first.
  void learn(sqlite_connection& db, char const* text) {
    sqlite_query q{db, text};
    first_ = q.next() ? Time{duration{q.integer(0)}} : Time::max();
  }
  /// One more is in the index.
  void add(Time t) noexcept {
    if (first_) first_ = std::min(*first_, t);
  }
  void forget() noexcept { first_.reset(); }

 private:
  std::optional<Time> first_{};
};

/// What the commands of one transaction share: who they run against.
struct sqlite_scope {
  sqlite_connection& db;
  sqlite_options const& options;
  bool writes = false;  ///< the transaction may write
  sqlite_ledger ledger{};
  sqlite_events events{};
};

}  // namespace weir::detail

#endif
