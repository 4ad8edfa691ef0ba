// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_TABLES_HPP
#define WEIR_STORE_SQLITE_TABLES_HPP

#include "weir/command/list.hpp"
#include "weir/concept.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"
#include "weir/store/sqlite/buckets.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/jobs.hpp"
#include "weir/store/sqlite/ledger.hpp"
#include "weir/store/sqlite/locks.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/permits.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace weir::detail {

/// The four nouns of a file side by side. None knows the others.
struct sqlite_nouns : sqlite_permits, sqlite_locks, sqlite_buckets, sqlite_jobs {
  explicit sqlite_nouns(sqlite_scope& in)
      : sqlite_permits{in},
        sqlite_locks{in},
        sqlite_buckets{in},
        sqlite_jobs{in} {}

  using sqlite_buckets::apply;
  using sqlite_jobs::apply;
  using sqlite_locks::apply;
  using sqlite_permits::apply;
};

template <class C>
concept sqlite_step = command_type<C> && requires(sqlite_nouns& s, C const& c, time_point now) {
  { s.apply(c, now) } -> std::same_as<result<typename C::result>>;
};

/// Does the command belong to this noun?
template <class C, class Noun>
concept sqlite_step_of = requires(Noun& n, C const& c, time_point now) { n.apply(c, now); };

namespace sql {

inline constexpr char data_version[] = "PRAGMA data_version";

}  // namespace sql

/// Executes commands on weir's tables, within transactions that are its caller's.
///
/// What is read of the file is kept from one transaction to the next as long as nobody else changes
/// it; after anything but a commit it must be told to `forget` that.
class sqlite_tables {
 public:
  sqlite_tables(sqlite_connection& db, sqlite_options const& options, sqlite_clock clock)
      : scope_{.db = db, .options = options},
        nouns_{scope_},
        clock_{std::move(clock)} {}
  sqlite_tables(sqlite_tables const&) = delete;
  sqlite_tables& operator=(sqlite_tables const&) = delete;

  /// To be called first in a transaction. False: the file's time has not begun in this boot of the
  /// host, which takes a transaction that writes; nothing else is to be called then.
  [[nodiscard]] bool begin(bool writes) {
    if (!writes) static_cast<void>(data_version());  // it has read from here on
    if (auto const version = scope_.db.version(); version != version_) {
      forget();
      version_ = version;
    }
    scope_.writes = writes;
    changes_ = scope_.db.total_changes();
    scope_.events.clear();
    gives_ = gave_ = false;
    if (stored_) return true;
    scope_.ledger = sqlite_ledger::read(scope_.db);
    bool const runs = clock_.runs(scope_.ledger);
    if (!runs && !writes) return false;
    stored_ = scope_.ledger;
    if (!runs) begin_time();
    return true;
  }

  template <sqlite_step C>
  result<typename C::result> apply(C const& c, time_point now) {
    if constexpr (!command::reads_only<C>) {
      latest_ = now;
      gives_ = gives_ || gives<C>;
      if constexpr (sqlite_step_of<C, sqlite_permits>) {
        ++permit_steps_;
      } else if constexpr (sqlite_step_of<C, sqlite_locks>) {
        ++lock_steps_;
      } else if constexpr (sqlite_step_of<C, sqlite_buckets>) {
        ++bucket_steps_;
      }
    }
    return nouns_.apply(c, now);
  }

  /// The date, which is not the file's time.
  [[nodiscard]] time_point date() const { return clock_.date(); }

  /// The file's time.
  [[nodiscard]] time_point now() {
    auto const t = clock_.now(scope_.ledger);
    passed_ = t;
    return t;
  }

  /// When a command is executed: at the time that it was told, or else at the file's.
  [[nodiscard]] time_point now_or(std::optional<time_point> told) {
    if (told) told_ = told;
    return told ? *told : now();
  }

  /// To be called last in a transaction that changes something: writes what has not been written.
  void finish() {
    tidy();
    nouns_.table().flush();
    bool const changed = scope_.ledger != *stored_ || scope_.db.total_changes() != changes_;
    if (!changed) return;
    gave_ = gives_;
    auto& ledger = scope_.ledger;
    auto const time = passed_ ? std::max(ledger.time, *passed_) : ledger.time;
    if (ledger != *stored_ || time >= saturating_add(stored_->time, sqlite_clock::grain)) {
      ledger.time = time;
      ledger.write(scope_.db);
    }
    for (auto const scan : scope_.events.scans_watched) {
      scope_.events.first_due[scan] = nouns_.table().first_due(scan);
    }
  }

  /// To be called after the commit.
  void committed() noexcept {
    try {
      stored_ = scope_.ledger;
    } catch (...) {  // no memory: it is read again
      return forget();
    }
    version_ = scope_.db.version();
    nouns_.sqlite_permits::trim();
    nouns_.table().trim();
  }

  /// Forgets what was read: it may not be so any more.
  void forget() noexcept {
    stored_.reset();
    version_.reset();
    passed_.reset();
    permit_steps_ = lock_steps_ = bucket_steps_ = 0;
    nouns_.sqlite_permits::forget();
    nouns_.sqlite_locks::forget();
    nouns_.sqlite_buckets::forget();
    nouns_.table().forget();
  }

  /// Changes whenever somebody else has committed. May be asked outside a transaction.
  [[nodiscard]] std::int64_t data_version() {
    sqlite_query q{scope_.db, sql::data_version};
    return q.next() ? q.integer(0) : 0;
  }

  /// May the latest transaction have made something that others wait for?
  [[nodiscard]] bool gave() const noexcept { return gave_; }

  /// Permits and tickets of all keys, when the file was last read or written.
  [[nodiscard]] std::uint64_t occupants() const noexcept { return scope_.ledger.permits; }
  /// Can a command's records be made without looking for those that are over?
  template <sqlite_step C>
  [[nodiscard]] bool has_room_for() const noexcept {
    constexpr std::uint64_t few = 32;
    auto const& l = scope_.ledger;
    auto const& o = scope_.options;
    if constexpr (sqlite_step_of<C, sqlite_permits>) return l.permits + few <= o.max_permits;
    if constexpr (sqlite_step_of<C, sqlite_locks>) return l.locks + few <= o.max_locks;
    if constexpr (sqlite_step_of<C, sqlite_buckets>) return l.buckets + few <= o.max_buckets;
    return l.jobs + few <= o.max_jobs;
  }

  /// When the latest command of this transaction that may have changed something was executed.
  [[nodiscard]] time_point latest() const noexcept { return latest_; }

  [[nodiscard]] sqlite_events& events() noexcept { return scope_.events; }
  [[nodiscard]] sqlite_permits& permits() noexcept { return nouns_; }
  [[nodiscard]] sqlite_job_table& jobs() noexcept { return nouns_.table(); }
  [[nodiscard]] std::uint32_t shards() const noexcept { return scope_.ledger.shards; }
  /// Of jobs that somebody had a lease of.
  [[nodiscard]] std::uint64_t cancels() const noexcept { return scope_.ledger.cancels; }

 private:
  /// All but those that are known to make nothing that anybody waits for.
  template <class C>
  static constexpr bool gives =
      !is_listed<C, command::lock_commands::list, command::bucket_commands::list> &&
      !is_listed<
          C, command::list_of<command::renew_permit, command::dequeue_jobs, command::obtain_lease,
                              command::extend_lease, command::start_job, command::complete_jobs>>;

  /// Begins the file's time. After a boot no process lives that had anything (F63).
  void begin_time() {
    bool const rebooted = clock_.rebooted(scope_.ledger);
    clock_.begin(scope_.ledger);
    sqlite_run(scope_.db, sql::write_boot, scope_.ledger.boot_id, scope_.ledger.boot_offset);
    if (!rebooted) return;
    nouns_.sqlite_permits::end_all();
    nouns_.sqlite_locks::end_all();
    nouns_.table().end_leases(scope_.ledger.time);
  }

  /// Removes a little of what time has ended: twice as much as the steps may have made. What is
  /// live at the latest told time stays, for its clock is not the file's.
  void tidy() {
    auto const now = told_ ? std::min(latest_, *told_) : latest_;
    // A row that housekeeping cannot read is no matter of the commands that it comes after.
    auto const spare = [](auto reap) {
      try {
        reap();
      } catch (sqlite_damage const&) {
      }
    };
    if (permit_steps_ != 0) spare([&] { nouns_.sqlite_permits::reap(now, 2 * permit_steps_); });
    if (lock_steps_ != 0) spare([&] { nouns_.sqlite_locks::reap(now, 2 * lock_steps_); });
    if (bucket_steps_ != 0) spare([&] { nouns_.sqlite_buckets::reap(now, 2 * bucket_steps_); });
    spare([&] { nouns_.table().tidy(now); });
    permit_steps_ = lock_steps_ = bucket_steps_ = 0;
  }

  sqlite_scope scope_;
  sqlite_nouns nouns_;
  sqlite_clock clock_;
  std::optional<sqlite_ledger> stored_;  // empty: nothing of what was read counts
  std::optional<unsigned> version_;
  std::optional<time_point> passed_;  // the latest time that a command was executed at
  time_point latest_{};               // the same, or what its caller said
  std::optional<time_point> told_;    // the latest that a caller said
  std::int64_t changes_ = 0;
  bool gives_ = false;
  bool gave_ = false;
  std::size_t permit_steps_ = 0;
  std::size_t lock_steps_ = 0;
  std::size_t bucket_steps_ = 0;
};

}  // namespace weir::detail

#endif
