// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_FILE_HPP
#define WEIR_STORE_SQLITE_FILE_HPP

#include "weir/command/list.hpp"
#include "weir/detail/explained.hpp"
#include "weir/detail/os_entropy.hpp"
#include "weir/error.hpp"
#include "weir/log.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/ledger.hpp"
#include "weir/store/sqlite/openings.hpp"
#include "weir/store/sqlite/options.hpp"
#include "weir/store/sqlite/reserve.hpp"
#include "weir/store/sqlite/schema.hpp"
#include "weir/store/sqlite/size.hpp"
#include "weir/store/sqlite/tables.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace weir::detail {

namespace sql {

inline constexpr char begin_write[] = "BEGIN IMMEDIATE";
inline constexpr char begin_read[] = "BEGIN";
inline constexpr char commit[] = "COMMIT";
inline constexpr char page_size[] = "PRAGMA page_size";
inline constexpr char free_pages[] = "PRAGMA freelist_count";

}  // namespace sql

/// Waits for other processes: what it has slept, together, is no longer than `busy_timeout`.
///
/// SQLite can wait by itself, but not always, nor for as long as one likes; it is asked not to.
/// Sleeps double from 50 µs to 10 ms, and are random from half of that on, so that those who wait
/// do not meet again.
class sqlite_patience {
 public:
  explicit sqlite_patience(duration timeout) noexcept : left_{timeout} {}

  /// Sleeps a little. False: there is no time left.
  bool wait() noexcept {
    using namespace std::chrono_literals;
    constexpr duration longest = 10ms;
    if (left_ <= duration::zero()) return false;
    auto const half = static_cast<std::uint64_t>(next_.count()) / 2;
    duration const nap{static_cast<duration::rep>(half + random_() % (half + 1))};
    std::this_thread::sleep_for(std::min(nap, left_));
    left_ -= nap;
    next_ = std::min(2 * next_, longest);
    return true;
  }

  /// Runs `step` until it is not busy, or no time is left.
  template <class Step>
  auto until_free(Step&& step) {
    for (;;) {
      try {
        return step();
      } catch (sqlite_failure const& f) {
        if (!f.busy() || !wait()) throw;
      }
    }
  }

 private:
  static std::uint64_t seed() noexcept {
    try {
      return os_entropy()[0];
    } catch (...) {  // any other number will do
      return 1;
    }
  }

  duration left_;
  duration next_ = std::chrono::microseconds{50};
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(seed())};
};

/// A file that is open, with its schema as this version wants it. For one thread.
class sqlite_file {
 public:
  /// Opens the file, which is made if it is not there. A file that is not weir's, or not of a
  /// version that this one knows, is left as it was.
  ///
  /// Errors: `store_foreign`, `schema_too_new`, `store_corrupt`, `store_read_only`,
  /// `store_unavailable`, `disk_full`; `invalid_option` when the file has another number of shards,
  /// or is where SQLite cannot keep a write-ahead log.
  [[nodiscard]] static result<std::unique_ptr<sqlite_file>> open(std::string const& path,
                                                                 sqlite_options const& options,
                                                                 sqlite_clock clock) {
    sqlite_patience patience{options.busy_timeout};
    try {
      return patience.until_free([&]() -> result<std::unique_ptr<sqlite_file>> {
        auto made = std::make_unique<sqlite_file>(path, options, clock);
        if (auto const ec = made->prepare()) return ec;
        return made;
      });
    } catch (sqlite_failure const& f) {
      // Its log wants room before anything can be emptied. SQLite follows links, and so the reserve
      // is beside the file itself.
      std::error_code failed;
      auto const whole = std::filesystem::weakly_canonical(path, failed).string();
      if (f.full() && sqlite_reserve{failed ? path : whole, options.reserve}.give_up()) {
        return open(path, options, clock);
      }
      return explained(to_error(f), cause_of(f, path));
    }
  }

  /// Why SQLite did not do it, for people.
  [[nodiscard]] static std::string cause_of(sqlite_failure const& f,
                                            std::string const& path) noexcept try {
    std::error_code ignored;
    auto const folder = std::filesystem::path{path}.parent_path();
    if (f.primary() == SQLITE_CANTOPEN && !folder.empty() &&
        !std::filesystem::exists(folder, ignored)) {
      return "there is no folder " + folder.string();
    }
    if (f.primary() == SQLITE_CANTOPEN && std::filesystem::is_directory(path, ignored)) {
      return "it is a folder";
    }
    if (f.busy()) return "other processes keep it for longer than sqlite_options::busy_timeout";
    return f.what();
  } catch (std::bad_alloc const&) {
    return {};
  }

  sqlite_file(std::string const& path, sqlite_options const& options, sqlite_clock clock)
      : options_{options},
        path_{path},
        db_{path},
        opening_{full_name(path)},
        reserve_{full_name(path), options_.reserve},
        tables_{db_, options_, std::move(clock)} {}
  sqlite_file(sqlite_file const&) = delete;
  sqlite_file& operator=(sqlite_file const&) = delete;

  [[nodiscard]] sqlite_tables& tables() noexcept { return tables_; }

  /// Of the database, whole: the process may change its folder.
  [[nodiscard]] std::string name() const { return full_name(path_); }

  /// Can a brief command be executed without waiting for the disk?
  template <class C>
  [[nodiscard]] bool is_brief(C const& c, bool writes) {
    constexpr std::uint64_t most_occupants = 1000;  // all of a line may have to be read
    if constexpr (sqlite_step_of<C, sqlite_permits>) {
      if (tables_.occupants() > most_occupants) return false;
    }
    if (!writes) return true;
    // The first commit to a log that begins anew waits for the disk, whatever it is to survive.
    bool const needs_room = command::needs_room<C> || sqlite_notes_of(c) != 0;
    return options_.durable == durability::process_crash && !log_is_new_ && !wants_write_back() &&
           (!needs_room || (!beyond_limit_ && tables_.has_room_for<C>() && reserve_.is_whole()));
  }

  /// Throws `sqlite_failure`; then no transaction has begun.
  /// @param in_place what would wait for the disk is busy instead
  void begin(bool writes, bool in_place = false) {
    sqlite_run(db_, writes ? sql::begin_write : sql::begin_read);
    writes_ = writes;
    try {
      // A commit that writes looks once more.
      if (!(writes && in_place) && db_.moved()) throw sqlite_failure{SQLITE_CANTOPEN};
      if (!tables_.begin(writes)) {
        if (in_place) throw sqlite_failure{SQLITE_BUSY};
        rollback();
        return begin(true);
      }
    } catch (...) {
      rollback();
      throw;
    }
  }

  /// Throws `sqlite_failure`; then `rollback` is to follow.
  void commit() {
    if (writes_) {
      tables_.finish();
      if (db_.moved()) throw sqlite_failure{SQLITE_CANTOPEN};
    }
    try {
      sqlite_run(db_, sql::commit);
    } catch (sqlite_failure const& f) {
      throw sqlite_failure{f.extended(), true};
    }
    tables_.committed();
  }

  /// False: the transaction goes on, for want of memory, and ends with the connection.
  bool rollback() noexcept {
    if (db_.in_transaction()) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    tables_.forget();
    return !db_.in_transaction();
  }

  /// May records be made? Takes the reserve's room again if it was given up. Within a transaction.
  [[nodiscard]] bool has_room() {
    if (beyond_limit_) limit_pages(0);
    return reserve_.fill() || free_bytes() >= options_.reserve;
  }

  /// Makes room for commands that make no records, outside of a transaction: gives up the reserve,
  /// lets the file exceed its limit, and writes the log back so that it begins anew.
  void make_room() {
    static_cast<void>(reserve_.give_up());
    if (options_.max_bytes != 0) limit_pages(options_.reserve);
    write_back_now();
  }

  /// Writes the log back into the file, if it has grown. For when nobody waits for an answer. Where
  /// a reader keeps it from that, which takes a while to see, it is tried again when the log has
  /// become twice as long.
  ///
  /// SQLite releases before 3.51.3 can lose what was committed when one process writes back while
  /// another begins the log anew ("WAL-reset bug"; 3.44.6 and 3.50.7 have the repair, too). With
  /// those the others are kept from writing meanwhile. An application's own connections to the same
  /// file are not: give them `PRAGMA wal_autocheckpoint = 0`, or a SQLite that is repaired.
  void write_back() noexcept {
    tell_of_long_log();
    if (log_pages_ < write_back_at_) return;
    auto const more = write_back_now() ? most_log_pages : log_pages_;
    write_back_at_ = std::int64_t{log_pages_} + more;
  }
  [[nodiscard]] bool wants_write_back() const noexcept {
    return log_pages_ >= write_back_at_ || log_bytes() >= long_log_;
  }

 private:
  static constexpr int most_log_pages = 1000;

  [[nodiscard]] std::int64_t log_bytes() const noexcept { return log_pages_ * page_size_; }

  /// The log cannot begin anew while somebody reads what was there before.
  void tell_of_long_log() noexcept {
    constexpr std::int64_t mebibyte = 1 << 20;
    auto const bytes = log_bytes();
    if (bytes < long_log_) return;
    try {
      tell_log(log::level::warning, log::topic::store,
               "SQLite store in " + path_ + ": its log has grown to " +
                   std::to_string(long_log_ / mebibyte) +
                   " MiB: a reader keeps it from being written back");
    } catch (...) {  // no memory
    }
    while (long_log_ <= bytes) long_log_ *= 4;
  }

  /// False: somebody kept it from being all written back.
  bool write_back_now() noexcept {
    log_is_new_ = true;
    int all = 0;
    int done = 0;
    auto const write = [&](int how) {
      return sqlite3_wal_checkpoint_v2(db_.handle(), "main", how, &all, &done) == SQLITE_OK &&
             done == all;
    };
    if (sqlite3_libversion_number() >= 3'051'003) return write(SQLITE_CHECKPOINT_PASSIVE);
    sqlite_patience patience{
        std::min<duration>(options_.busy_timeout, std::chrono::milliseconds{250})};
    sqlite3_busy_handler(
        db_.handle(), [](void* p, int) { return static_cast<sqlite_patience*>(p)->wait() ? 1 : 0; },
        &patience);
    bool const whole = write(SQLITE_CHECKPOINT_FULL);
    sqlite3_busy_handler(db_.handle(), nullptr, nullptr);
    return whole;
  }

  [[nodiscard]] std::string full_name(std::string const& path) const {
    auto const* const name = sqlite3_db_filename(db_.handle(), "main");
    return name != nullptr && *name != '\0' ? name : path;
  }

  /// What fails here closes the connection, and with it ends any transaction.
  error_code prepare() {
    if (opening_.too_many()) {
      return explained(errc::invalid_option,
                       "this process has " + std::to_string(sqlite_opening::most) +
                           " stores on it already: keep one, which its copies share");
    }
    // Before anything is read: SQLite would make a log beside it, as read-only as the file.
    if (sqlite3_db_readonly(db_.handle(), "main") != 0) {
      return explained(errc::store_read_only, "this user may not write to it");
    }
    sqlite_run(db_, sql::begin_read);  // what is read below is of one moment
    auto const found = identify(db_, options_.in_application_database);
    sqlite_run(db_, sql::commit);
    if (found.has_error()) return found.error();
    configure();
    {
      sqlite_query q{db_, sql::journal_mode_wal};
      if (!q.next() || q.anything(0) != "wal") {
        return explained(errc::invalid_option, "SQLite keeps no write-ahead log there: is it in "
                                               "memory, or on a network's file system?");
      }
    }
    if (found->schema != sqlite_schema) {
      if (auto const ec = make_schema()) return ec;
    }
    auto const there = sqlite_ledger::read(db_).shards;
    if (there != options_.shards) {
      return explained(errc::invalid_option, "sqlite_options::shards is " +
                                                 std::to_string(options_.shards) +
                                                 ", and the file has " + std::to_string(there));
    }
    sqlite3_wal_hook(
        db_.handle(),
        [](void* self, sqlite3*, char const*, int pages) {
          static_cast<sqlite_file*>(self)->log_has(pages);
          return SQLITE_OK;
        },
        this);
    return {};
  }

  void log_has(int pages) noexcept {
    log_pages_ = pages;
    log_is_new_ = false;
    if (pages >= most_log_pages) return;
    write_back_at_ = most_log_pages;
    long_log_ = least_long_log;
  }

  // Sets what `sqlite_options` say of the store's own connection.
  void configure() {
    bool const full = options_.durable == durability::power_loss;
    db_.run(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    db_.run("PRAGMA cache_size = -16384");  // KiB
    page_size_ = std::max<std::int64_t>(number(sql::page_size), 512);
    if (options_.max_bytes != 0) limit_pages(0);
  }

  void limit_pages(std::uint64_t beyond) {
    auto const bytes = options_.max_bytes + beyond;
    auto const pages = std::max<std::uint64_t>(bytes / static_cast<std::uint64_t>(page_size_), 1);
    db_.run(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
    beyond_limit_ = beyond != 0;
  }

  [[nodiscard]] std::uint64_t free_bytes() {
    return static_cast<std::uint64_t>(number(sql::free_pages) * page_size_);
  }
  [[nodiscard]] std::int64_t number(char const* pragma) {
    sqlite_query q{db_, pragma};
    return q.next() ? q.within<std::int64_t>(0, 0, std::int64_t{1} << 32) : 0;
  }

  /// Makes the schema what this version wants, also when another process is about to.
  error_code make_schema() {
    sqlite_run(db_, sql::begin_write);
    auto const found = identify(db_, options_.in_application_database);
    if (found.has_error()) return found.error();
    migrate(db_, *found, options_.shards, tables_.date());
    sqlite_run(db_, sql::commit);
    return {};
  }

  sqlite_options options_;
  std::string path_;
  sqlite_connection db_;
  sqlite_opening opening_;
  sqlite_reserve reserve_;
  sqlite_tables tables_;
  std::int64_t page_size_ = 512;
  bool beyond_limit_ = false;
  int log_pages_ = 0;
  bool log_is_new_ = true;
  static constexpr std::int64_t least_long_log = std::int64_t{64} << 20;
  std::int64_t long_log_ = least_long_log;  // bytes of which the log is told
  std::int64_t write_back_at_ = most_log_pages;
  bool writes_ = false;
};

}  // namespace weir::detail

#endif
