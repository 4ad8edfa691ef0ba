// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_BED_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_BED_HPP

#include "patience.hpp"
#include "postgres_server.hpp"
#include "store_fixture.hpp"
#include "weir/store/postgres.hpp"
#include "weir/store/postgres/socket.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace postgres_test {

using namespace weir;
using namespace std::chrono_literals;

using weir_test::ask;

/// A connection of the test's own.
class connection {
 public:
  explicit connection(std::string const& conninfo) : db_{PQconnectdb(conninfo.c_str())} {
    BOOST_TEST_REQUIRE((PQstatus(db_.get()) == CONNECTION_OK), PQerrorMessage(db_.get()));
    PQsetNoticeReceiver(db_.get(), [](void*, PGresult const*) {}, nullptr);
  }

  [[nodiscard]] PGconn* get() const noexcept { return db_.get(); }

  /// Executes statements. The first field of the last one's answer.
  std::string must(std::string const& sql) {
    weir::detail::postgres_result const r{PQexec(db_.get(), sql.c_str())};
    auto const status = PQresultStatus(r.get());
    BOOST_TEST_REQUIRE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK),
                       sql.substr(0, 200) << ": " << PQerrorMessage(db_.get()));
    return status == PGRES_TUPLES_OK && PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
  }
  std::int64_t number(std::string const& sql) { return std::stoll(must(sql)); }

 private:
  std::unique_ptr<PGconn, weir::detail::postgres_finish> db_;
};

/// Options for tests, whose told times are not the server's. Nobody is given up because a machine
/// is slow: what a test shows of that is in its own options.
[[nodiscard]] inline postgres_options quick() {
  postgres_options o;
  o.connect_timeout = o.command_timeout = 1min;
  o.tidy_interval = limits::span;
  o.poll_interval = 20ms;
  return o;
}

/// How many unique keys of jobs are taken: the rows of others stay for a while.
inline constexpr char taken_keys[] =
    "SELECT count(*) FROM weir.keys k LEFT JOIN weir.jobs j ON j.queue = k.queue AND j.id = "
    "k.owner "
    "AND j.unique_key = k.key WHERE CASE WHEN k.run THEN j.fence = k.fence AND j.holder IS NOT "
    "NULL "
    "WHEN k.until IS NULL THEN j.id IS NOT NULL ELSE k.until > weir.clock() END";

/// Gives a database the tables of version 6, without its functions.
inline constexpr char as_version_6[] = R"(
CREATE TABLE weir.was AS SELECT k.queue, k.run, k.key, k.owner, k.until FROM weir.keys k
  WHERE k.owner IS NOT NULL;
DROP TABLE weir.keys CASCADE;
CREATE TABLE weir.keys (queue bytea NOT NULL, run boolean NOT NULL, key bytea NOT NULL,
  owner uuid NOT NULL, until bigint, PRIMARY KEY (queue, run, key));
CREATE INDEX keys_until ON weir.keys (until) WHERE until IS NOT NULL;
INSERT INTO weir.keys SELECT * FROM weir.was;
DROP TABLE weir.was;
DELETE FROM weir.used_keys WHERE due IS NOT NULL;
ALTER TABLE weir.used_keys DROP due;
DROP FUNCTION weir.take_key, weir.lock_keys;
CREATE FUNCTION weir.take_key(bytea, boolean, bytea, uuid, bigint) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION weir.free_run(bytea, weir.jobs) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION weir.leaves_run(weir.jobs) RETURNS boolean LANGUAGE sql AS 'SELECT true';
UPDATE weir.state SET version = 6;
)";

/// All tables as they are at first. A TRUNCATE of so many takes ten times as long.
inline void empty_tables(connection& db) {
  std::string sql = "SELECT setval('weir.fences', 1)";
  std::string names;
  for (std::string const table :
       {"used_keys", "permit_lines", "permits", "locks", "buckets", "queues", "pointers",
        "counters", "jobs", "dead_letters", "ended", "dequeues", "keys", "hints"}) {
    sql += "; DELETE FROM weir." + table;
    names += (names.empty() ? "weir." : ", weir.") + table;
  }
  db.must(sql + "; UPDATE weir.state SET forgotten = -9223372036854775808");
  db.must("VACUUM " + names);
}

/// Brings the database to this version's schema.
inline error_code migrate(boost::asio::io_context& io, postgres_store const& store) {
  error_code out = errc::timed_out;
  store.async_migrate([&](error_code ec) { out = ec; });
  io.restart();
  io.run();
  return out;
}

/// A fresh store in a database of its own.
struct bed {
  explicit bed(postgres_options const& o = quick(), std::string const& settings = "",
               server const& on = the_server())
      : database{fresh(settings, on)},
        options{o},
        db{on.conninfo(database)},
        store{io.get_executor(), on.conninfo(database), o} {
    BOOST_TEST_REQUIRE(!migrate(io, store));
  }

  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  static std::string fresh(std::string const& settings, server const& on = the_server()) {
    static int made = 0;
    auto const name = "bed" + std::to_string(++made);
    connection there{on.conninfo()};
    there.must("CREATE DATABASE " + name);
    if (!settings.empty()) there.must("ALTER DATABASE " + name + " SET " + settings);
    return name;
  }

  std::string database;
  postgres_options options;
  connection db;
  boost::asio::io_context io{};
  postgres_store store;
};

[[nodiscard]] inline job_id id(std::uint8_t n) {
  job_id out{};
  *(out.end() - 1) = n;
  return out;
}
[[nodiscard]] inline new_job job_of(std::uint8_t n, std::string_view unique_key = {}) {
  new_job out;
  out.id = id(n);
  out.kind = "kind";
  out.payload = "{}";
  out.unique_key = unique_key;
  if (!unique_key.empty()) out.strategy = unique_strategy::until_executed;
  return out;
}

[[nodiscard]] inline command::acquire_lock take_lock(std::string_view key,
                                                     std::string_view holder = "h") {
  return {key, holder, 1h};
}

/// Starts a command; its error once it has ended.
template <class C>
std::shared_ptr<std::optional<error_code>> start(postgres_store const& store, C const& c) {
  auto out = std::make_shared<std::optional<error_code>>();
  store.async_execute(c, [out](error_code ec, typename C::result) { *out = ec; });
  return out;
}

inline void finish(boost::asio::io_context& io, std::optional<error_code> const& what) {
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return what.has_value(); }));
}

[[nodiscard]] inline bool lost(error_code ec) {
  return ec == errc::outcome_unknown || ec == errc::store_unavailable;
}

/// Whoever else is connected to the database has to be connected anew.
inline void end_all_backends(connection& db) {
  db.must("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity "
          "WHERE datname = current_database() AND pid <> pg_backend_pid()");
}

/// From now on weir's commands wait for a lock as long as it takes. Where a test holds one until
/// several of them wait for it, it is not to matter how long they take to get there.
inline void let_locks_take_long(connection& db) {
  db.must(R"(DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'weir'::regnamespace
      AND array_to_string(proconfig, ' ') LIKE '%lock_timeout%' LOOP
    EXECUTE format('ALTER FUNCTION %s SET lock_timeout = 0', f);
  END LOOP;
END $$)");
}

/// From now on whoever inserts a second job in a transaction waits until this connection gives the
/// lock 4711 back.
inline void hold_second_inserts(connection& db) {
  let_locks_take_long(db);
  db.must(R"(CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('test.second', true) = 'yes' THEN
    PERFORM pg_advisory_xact_lock_shared(4711);
  END IF;
  PERFORM set_config('test.second', 'yes', true);
  RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON weir.jobs FOR EACH ROW EXECUTE FUNCTION public.hold();
SELECT pg_advisory_lock(4711))");
}

/// Waits until somebody waits for a lock in the database.
inline void until_somebody_waits(boost::asio::io_context& io, std::string const& database,
                                 int how_many = 1) {
  connection db{the_server().conninfo(database)};  // no transaction: that would see the same again
  auto const give_up = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < give_up) {
    if (db.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                  "AND datname = current_database()") >= how_many) {
      return;
    }
    io.restart();
    io.run_one_for(5ms);
    io.poll();  // all of it: looking may take longer than what there is to do
  }
  BOOST_TEST_REQUIRE(false, "nobody waits");
}

}  // namespace postgres_test

#endif
