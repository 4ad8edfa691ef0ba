// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Files of a SQLite store that somebody has written to (F93, F97): columns of any type and size in
// every table, whatever the schema forbids; and bytes of any page, of the log and of its index.
// Nothing crashes or hangs, each command ends with an answer or with an error that says what it is,
// and damaged records are no matter of other queues and keys.

#include "weir/store/sqlite.hpp"

#include "hostile/campaign.hpp"
#include "integration/directory.hpp"
#include "weir/clock/manual.hpp"

#include <boost/asio/io_context.hpp>

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using hostile::dice;
using hostile::expect;

using store_type = basic_sqlite_store<manual_clock>;

sqlite_options quick() {
  sqlite_options o;
  o.durable = durability::process_crash;
  o.busy_timeout = 5ms;
  return o;
}

/// A connection of the attacker's.
class attacker {
 public:
  explicit attacker(std::string const& path) {
    expect(sqlite3_open(path.c_str(), &db_) == SQLITE_OK, "the file is opened");
    sqlite3_busy_timeout(db_, 10'000);
  }
  attacker(attacker const&) = delete;
  attacker& operator=(attacker const&) = delete;
  ~attacker() { sqlite3_close(db_); }

  bool run(std::string const& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  void must(std::string const& sql) { expect(run(sql), sql + ": " + sqlite3_errmsg(db_)); }

  [[nodiscard]] std::vector<std::string> column(std::string const& sql) {
    std::vector<std::string> out;
    auto const add = [](void* to, int, char** row, char**) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(row[0] == nullptr ? "" : row[0]);
      return 0;
    };
    sqlite3_exec(db_, sql.c_str(), add, &out, nullptr);
    return out;
  }
  [[nodiscard]] std::int64_t changes() const { return sqlite3_changes64(db_); }

 private:
  sqlite3* db_ = nullptr;
};

/// A store of one round, and its errors.
struct fixture {
  explicit fixture(std::string const& path, manual_clock c = manual_clock{})
      : clock{c},
        store{io.get_executor(), path, quick(), clock} {}

  template <class C>
  result<typename C::result> operator()(C const& c) {
    std::optional<result<typename C::result>> out;
    store.async_execute(c, [&](error_code ec, typename C::result a) {
      if (ec) {
        out = ec;
      } else {
        out = std::move(a);
      }
    });
    io.restart();
    while (!out && io.run_one() != 0) {
    }
    expect(out.has_value(), "each command is answered");
    if (out->has_error()) ++errors;
    return *out;
  }

  manual_clock clock;
  boost::asio::io_context io{};
  store_type store;
  std::uint64_t errors = 0;
};

job_id id_of(std::uint64_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 8; ++i) out.data[15 - i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[0] = 1;
  return out;
}

std::array const quotas{quota::per_second(10), quota::per_hour(100).burst(20)};

/// Something of every kind in a queue, and under a key, of this name.
void furnish(fixture& f, std::string const& name, std::uint64_t first) {
  std::string const large(2000, 'p');
  std::vector<new_job> jobs;
  auto const add = [&](std::uint8_t priority) -> new_job& {
    auto& j = jobs.emplace_back();
    j.id = id_of(first + jobs.size());
    j.kind = "kind";
    j.payload = jobs.size() % 3 == 0 ? std::string_view{large} : "small";
    j.priority = priority;
    j.retention = 1h;
    return j;
  };
  for (int const p : {0, 7, 7, 100, 255}) add(static_cast<std::uint8_t>(p));
  add(9).delay = 30min;
  add(9).deadline = 1h;
  std::vector<std::string> keys;
  for (int s = 1; s != 6; ++s) keys.push_back("unique" + std::to_string(s));
  for (int s = 1; s != 6; ++s) {
    auto& j = add(50);
    j.unique_key = keys[static_cast<std::size_t>(s) - 1];
    j.strategy = static_cast<unique_strategy>(s);
    j.unique_ttl = j.strategy == unique_strategy::until_expired ? duration{2h} : duration{};
  }
  expect(f(command::enqueue_jobs{name, jobs}).has_value(), "jobs are enqueued");
  auto const taken = f(command::dequeue_jobs{
      .queue = name, .holder = "h", .sequence = 1, .limit = 8, .lease = 1min});
  expect(taken.has_value() && taken->jobs.size() == 8, "some are leased");
  for (std::size_t i = 5; i != 8; ++i) {
    (void)f(
        command::start_job{.queue = name, .id = taken->jobs[i].id, .fence = taken->jobs[i].fence});
  }
  std::array const done{finished_job{taken->jobs[0].id, taken->jobs[0].fence, "result"}};
  expect(f(command::complete_jobs{name, done}).has_value(), "one is completed");
  (void)f(command::bury_job{name, taken->jobs[1].id, taken->jobs[1].fence, "why"});
  (void)f(command::snooze_job{name, taken->jobs[2].id, taken->jobs[2].fence, 1min, "memo"});
  (void)f(command::cancel_job{.queue = name, .id = taken->jobs[3].id, .running = true});
  (void)f(command::obtain_queue_lease{.queue = name, .holder = "q", .lease = 1min});
  for (std::string const holder : {"a", "b", "c", "d"}) {
    (void)f(command::acquire_permit{
        .key = name, .holder = holder, .limit = 2, .ttl = 1min, .patience = 1min});
  }
  (void)f(command::acquire_lock{name, "a", 1min});
  (void)f(command::take{.key = name, .quotas = quotas, .cost = 3});
}

/// Everything that may be asked of this name. Errors are counted, and named by `check`.
void use(fixture& f, std::string const& name, std::uint64_t first,
         std::function<void(error_code, std::string_view)> const& check) {
  auto const ask = [&](std::string_view what, auto const& command) {
    auto answer = f(command);
    if (answer.has_error()) check(answer.error(), what);
    return answer;
  };
  for (std::string const holder : {"a", "c", "new"}) {
    ask("permit", command::acquire_permit{
                      .key = name, .holder = holder, .limit = 3, .ttl = 1min, .patience = 1min});
    ask("permit", command::release_permit{.key = name, .holder = holder});
  }
  ask("permit", command::inspect_permits{name, 10});
  ask("lock", command::inspect_lock{name});
  ask("lock", command::acquire_lock{name, "b", 1min});
  ask("lock", command::release_lock{.key = name, .holder = "b"});
  ask("bucket", command::peek_bucket{.key = name, .quotas = quotas});
  if (auto const t = ask("bucket", command::take{.key = name, .quotas = quotas})) {
    ask("bucket", command::refund{.key = name, .quotas = quotas, .cost = 1, .mark = t->mark});
  }
  ask("queue", command::read_queue_stats{name});
  ask("peek", command::peek_jobs{name, 100});
  ask("queue", command::min_vesting_time{name});
  ask("queue", command::update_queue_pointer{name});
  std::array<new_job, 2> jobs;
  jobs[0].id = id_of(first + 100);
  jobs[1].id = id_of(first + 101);
  jobs[0].kind = jobs[1].kind = "kind";
  jobs[0].priority = 0;
  ask("enqueue", command::enqueue_jobs{name, jobs});
  for (int s = 1; s != 6; ++s) {
    new_job j;
    j.id = id_of(first + 110 + static_cast<std::uint64_t>(s));
    j.kind = "kind";
    auto const key = "unique" + std::to_string(s);
    j.unique_key = key;
    j.strategy = static_cast<unique_strategy>(s);
    j.on_conflict = s % 2 == 0 ? conflict_policy::replace : conflict_policy::reschedule;
    j.unique_ttl = j.strategy == unique_strategy::until_expired ? duration{2h} : duration{};
    ask("unique", command::enqueue_jobs{name, std::span{&j, 1}});
  }
  for (std::uint64_t i = 1; i != 13; ++i) {
    ask("job", command::find_job{name, id_of(first + i)});
    if (i % 4 == 0) ask("job", command::cancel_job{.queue = name, .id = id_of(first + i)});
    if (i % 4 == 1) {
      ask("job",
          command::obtain_lease{.queue = name, .id = id_of(first + i), .holder = "h", .lease = 1s});
    }
  }
  auto const letters =
      ask("letters", command::list_dead_letters{.queue = name, .limit = 3, .cursor = {}});
  if (letters && !letters->cursor.empty()) {
    ask("letters",
        command::list_dead_letters{.queue = name, .limit = 100, .cursor = letters->cursor});
  }
  if (letters && !letters->jobs.empty()) {
    ask("letter", command::replay_dead_letter{.queue = name, .id = letters->jobs[0].id});
  }
}

/// Claims and completes until nothing is visible. Bounded: each turn takes something away.
void drain(fixture& f, std::string const& name, std::uint64_t& damaged,
           std::function<void(error_code, std::string_view)> const& check) {
  for (int turn = 0;; ++turn) {
    expect(turn < 200, "a queue is drained");
    auto const taken =
        f(command::dequeue_jobs{.queue = name, .holder = "h", .limit = 10, .lease = 1min});
    if (taken.has_error()) return check(taken.error(), "dequeue");
    damaged += taken->damaged;
    std::vector<finished_job> done;
    for (auto const& j : taken->jobs) {
      (void)f(command::start_job{.queue = name, .id = j.id, .fence = j.fence});
      done.push_back({j.id, j.fence, "r"});
    }
    if (!done.empty()) {
      auto const ended = f(command::complete_jobs{name, done});
      if (ended.has_error()) check(ended.error(), "complete");
    }
    if (!taken->more || taken->held) return;
  }
}

/// The file as it is before the attack, made once: at rest, and with a log beside it.
class templates {
 public:
  templates() {
    auto const path = at_rest();
    {
      fixture f{path};
      furnish(f, "well", 1000);
      furnish(f, "hurt", 2000);
      std::filesystem::create_directory(log_home());
      for (auto const* const suffix : {"", "-wal", "-shm"}) {
        std::filesystem::copy_file(path + suffix, with_log() + suffix);
      }
    }
    attacker db{path};
    db.must("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  [[nodiscard]] std::string at_rest() const { return home_.file(); }
  [[nodiscard]] std::string with_log() const { return log_home() + "/store.db"; }

 private:
  [[nodiscard]] std::string log_home() const { return home_.file("log"); }
  weir_test::directory home_{};
};

std::string some_value(dice& d) {
  static std::array<std::string_view, 36> const values{"NULL",
                                                       "0",
                                                       "1",
                                                       "2",
                                                       "3",
                                                       "5",
                                                       "255",
                                                       "256",
                                                       "-1",
                                                       "-2147483649",
                                                       "4294967296",
                                                       "9007199254740992",
                                                       "4611686018427387904",
                                                       "9223372036854775807",
                                                       "-9223372036854775808",
                                                       "0.5",
                                                       "1e300",
                                                       "-1e300",
                                                       "2.5",
                                                       "'text'",
                                                       "''",
                                                       "x''",
                                                       "x'00'",
                                                       "'1'",
                                                       "zeroblob(15)",
                                                       "zeroblob(16)",
                                                       "randomblob(16)",
                                                       "zeroblob(24)",
                                                       "randomblob(24)",
                                                       "randomblob(96)",
                                                       "zeroblob(128)",
                                                       "zeroblob(129)",
                                                       "randomblob(1025)",
                                                       "randomblob(4097)",
                                                       "randomblob(1048577)",
                                                       "zeroblob(5000000)"};
  if (d.chance(20)) return std::to_string(static_cast<std::int64_t>(d.bits()));
  return std::string{d.pick(values)};
}

struct target {
  std::string_view table;
  std::string_view rows;  // that belong to "hurt"
};
constexpr std::array<target, 7> records{{
    {"weir_jobs", "queue = (SELECT queue FROM weir_queues WHERE name = x'68757274')"},
    {"weir_queues", "name = x'68757274'"},
    {"weir_keys", "queue = (SELECT queue FROM weir_queues WHERE name = x'68757274')"},
    {"weir_payloads", "body IN (SELECT body FROM weir_jobs WHERE queue = (SELECT queue FROM "
                      "weir_queues WHERE name = x'68757274'))"},
    {"weir_permits", "key = x'68757274'"},
    {"weir_locks", "key = x'68757274'"},
    {"weir_buckets", "key = x'68757274'"},
}};

/// What no check could tell from a sound value is left out: the number of another job's payload. So
/// are a queue's row and an index entry of a job that are too large to be read at all.
std::string value_for(std::string const& column, target const& t, dice& d) {
  for (;;) {
    auto value = some_value(d);
    if (column == "body" && value.find_first_not_of("0123456789") == value.npos) continue;
    bool const text = column == "payload" || column == "result" || column == "kind";
    if (t.rows.find("weir_queues") != t.rows.npos && !text && value == "zeroblob(5000000)")
      continue;
    if (t.table == "weir_queues" && value == "zeroblob(5000000)") continue;
    return value;
  }
}

/// Sets columns of a table's rows to anything, as who has the file can: without STRICT, NOT NULL
/// and CHECK. Returns what was done.
std::string damage(std::string const& path, dice& d, target const& t, std::uint64_t& rows) {
  {
    attacker db{path};
    db.must("PRAGMA writable_schema = ON; CREATE TABLE saved AS SELECT name AS n, sql AS s FROM "
            "sqlite_schema WHERE sql IS NOT NULL");
    db.must("UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'STRICT, ', ''), "
            "'STRICT', ''), 'NOT NULL', '') WHERE name LIKE 'weir%' AND type = 'table'");
  }
  std::string what;
  {
    attacker db{path};
    db.must("PRAGMA ignore_check_constraints = ON");
    auto columns = db.column("SELECT name FROM pragma_table_info('" + std::string{t.table} + "')");
    for (auto n = 1 + d.below(3); n != 0; --n) {
      auto const& column = d.pick(columns);
      auto sql = "UPDATE OR IGNORE " + std::string{t.table} + " SET " + column + " = " +
                 value_for(column, t, d) + " WHERE " + std::string{t.rows};
      if (d.chance(50)) sql += " AND abs(random()) % 3 = 0";
      if (db.run(sql)) rows += static_cast<std::uint64_t>(db.changes());
      what += sql + "; ";
    }
  }
  attacker db{path};
  db.must("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = (SELECT s FROM saved WHERE "
          "n = name) WHERE name LIKE 'weir%' AND type = 'table'; DROP TABLE saved");
  db.must("PRAGMA writable_schema = RESET");
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  return what;
}

/// Is it one of the errors that say what is wrong with a file?
bool says_what(error_code ec) {
  return ec == errc::store_corrupt || ec == errc::store_foreign || ec == errc::schema_too_new ||
         ec == errc::schema_outdated || ec == errc::invalid_option ||
         ec == errc::store_unavailable || ec == errc::disk_full || ec == errc::store_read_only ||
         ec == errc::store_full || ec == boost::system::errc::not_enough_memory;
}

void records_of_one_name(templates const& from, dice& d, hostile::campaign& all) {
  weir_test::directory const home;
  auto const path = home.file();
  std::filesystem::copy_file(from.at_rest(), path);
  auto const& t = d.pick(records);
  std::uint64_t rows = 0;
  auto const what = damage(path, d, t, rows);
  all.count("damaged rows", rows);

  fixture f{path};
  auto const unexpected = [&](error_code ec, std::string_view op) {
    expect(false, std::string{op} + ": " + ec.message() + " after " + what);
  };
  std::uint64_t damaged = 0;
  auto const hurt = [&](error_code ec, std::string_view op) {
    all.count("refused: " + std::string{op} + ", " + ec.message());
    bool const own = ec == errc::lease_lost || ec == errc::unique_conflict;
    if (own) return;
    if (ec != errc::store_corrupt) unexpected(ec, op);
    // A damaged job is set aside, and stops neither its queue nor a listing.
    bool const goes_on = op == "dequeue" || op == "complete" || op == "peek" || op == "letters" ||
                         op == "queue" || op == "enqueue";
    if (goes_on) unexpected(ec, op);
  };
  auto const well = [&](error_code ec, std::string_view op) {
    if (ec != errc::lease_lost && ec != errc::unique_conflict) unexpected(ec, op);
  };
  for (int boot = 0; boot != 3; ++boot) {
    use(f, "well", 1000, well);
    use(f, "hurt", 2000, hurt);
    for (auto const* const name : {"hurt", "well"}) {
      auto const scan =
          f(command::scan_visible_queues{.shard = 0, .limit = 10, .entropy = d.bits()});
      if (scan.has_error()) unexpected(scan.error(), "scan");
      if (name == std::string_view{"hurt"}) {
        drain(f, name, damaged, hurt);
      } else {
        drain(f, name, damaged, well);
      }
    }
    if (auto const r = f(command::list_queues{.shard = 0, .limit = 10, .cursor = {}});
        r.has_error()) {
      unexpected(r.error(), "list");
    }
    (void)f(command::reap_buckets{});
    (void)f(command::gc_stale_pointers{.shard = 0, .limit = 10});
    f.clock.advance(1h);
  }
  all.count("set aside", damaged);
}

/// What stands in weir_state concerns the file as a whole.
void state(templates const& from, dice& d, hostile::campaign& all) {
  weir_test::directory const home;
  auto const path = home.file();
  std::filesystem::copy_file(from.at_rest(), path);
  std::uint64_t rows = 0;
  auto const what = damage(path, d, {"weir_state", "true"}, rows);
  all.count("damaged rows", rows);
  fixture f{path};
  auto const any = [&](error_code ec, std::string_view op) {
    all.count("refused: " + ec.message());
    expect(says_what(ec) || ec == errc::lease_lost || ec == errc::unique_conflict,
           std::string{op} + ": " + ec.message() + " after " + what);
  };
  std::uint64_t damaged = 0;
  use(f, "well", 1000, any);
  drain(f, "well", damaged, any);
  f.clock.advance(1h);
  use(f, "hurt", 2000, any);
}

void spoil(std::string const& path, dice& d) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  auto const size = std::filesystem::file_size(path);
  if (size == 0) return;
  auto const page = [&] { return d.below(std::max<std::uint64_t>(size / 4096, 1)) * 4096; };
  for (auto n = 1 + d.below(8); n != 0; --n) {
    auto const kind = d.below(10);
    // Headers of the file and of its pages first: what stands there is believed by the rest.
    auto const at = kind < 3   ? d.below(std::min<std::uint64_t>(size, 100))
                    : kind < 6 ? std::min(page() + d.below(32), size - 1)
                               : d.below(size);
    file.seekp(static_cast<std::streamoff>(at));
    if (kind == 9) {
      std::string const block(d.below(4096), static_cast<char>(d.bits()));
      file.write(block.data(),
                 static_cast<std::streamsize>(std::min<std::uint64_t>(block.size(), size - at)));
    } else {
      file.put(static_cast<char>(d.chance(30) ? 0xff : d.bits()));
    }
  }
  file.close();
  if (d.chance(10)) std::filesystem::resize_file(path, d.below(size));
}

void bytes(templates const& from, dice& d, hostile::campaign& all) {
  weir_test::directory const home;
  auto const path = home.file();
  bool const log = d.chance(50);
  auto const& source = log ? from.with_log() : from.at_rest();
  std::filesystem::copy_file(source, path);
  if (log) {
    std::filesystem::copy_file(source + "-wal", path + "-wal");
    if (d.chance(50)) std::filesystem::copy_file(source + "-shm", path + "-shm");
  }
  auto const spoiled = log && d.chance(70) ? path + "-wal" : path;
  spoil(spoiled, d);
  all.count(log ? "spoiled with a log" : "spoiled at rest");
  fixture f{path};
  auto const any = [&](error_code ec, std::string_view op) {
    all.count("refused: " + ec.message());
    expect(says_what(ec) || ec == errc::lease_lost || ec == errc::unique_conflict,
           std::string{op} + ": " + ec.message());
  };
  std::uint64_t damaged = 0;
  bool const index = log && d.chance(30);
  for (int boot = 0; boot != 2; ++boot) {
    use(f, "hurt", 2000, any);
    drain(f, "hurt", damaged, any);
    use(f, "well", 1000, any);
    (void)f(command::reap_buckets{});
    // The log's index, which all processes have in memory.
    if (index && std::filesystem::exists(path + "-shm")) {
      std::fstream shm{path + "-shm", std::ios::in | std::ios::out | std::ios::binary};
      for (int i = 0; i != 16; ++i) {
        shm.seekp(static_cast<std::streamoff>(d.below(8192)));
        shm.put(static_cast<char>(d.bits()));
      }
    }
    f.clock.advance(1h);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hostile::campaign all{argc, argv};
  templates const from;
  all.add("records", 60, [&](dice& d) { records_of_one_name(from, d, all); });
  all.add("state", 15, [&](dice& d) { state(from, d, all); });
  all.add("bytes", 60, [&](dice& d) { bytes(from, d, all); });
  return all.run();
}
