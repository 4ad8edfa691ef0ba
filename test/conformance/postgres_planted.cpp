// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F89: another role of the database makes functions, operators and types whose names weir uses, in
// every schema that a session looks at. Weir is migrated by a superuser and executes everything;
// nothing of the other role's runs.

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace weir::testing {
namespace {

using namespace postgres_test;

/// In a database that is copied for each new one: a sequence that everything planted draws from,
/// and what is planted in three schemas. Functions: one for each of the system's, with its
/// arguments, and, for each name in weir's schema, one for each pair of types, some of which fit
/// better than the system's. Operators: the same.
constexpr char planting[] = R"sql(
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE SEQUENCE trap.ran;
GRANT ALL ON SEQUENCE trap.ran TO PUBLIC;
CREATE SCHEMA postgres;
CREATE SCHEMA least;
GRANT USAGE ON SCHEMA postgres, least TO PUBLIC;
DO $plant$
DECLARE
  body CONSTANT text := $$LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.nextval(''trap.ran''); RETURN NULL; END'$$;
  types CONSTANT text[] := '{smallint,integer,bigint,numeric,text,bytea,uuid,boolean,oid,tid}';
  s text;
  p record;
  l text;
  r text;
  planted integer := 0;
BEGIN
  FOREACH l IN ARRAY types LOOP
    FOREACH r IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION trap.asks(%s, %s) RETURNS boolean ', l, r) || body;
      EXECUTE format('CREATE FUNCTION trap.makes(%s, %s) RETURNS %1$s ', l, r) || body;
    END LOOP;
  END LOOP;
  FOREACH s IN ARRAY '{public,postgres,least}'::text[] LOOP
    FOR p IN SELECT DISTINCT o.proname, pg_get_function_identity_arguments(o.oid) AS arguments,
          o.prorettype::regtype AS gives
        FROM pg_proc o WHERE o.pronamespace = 'pg_catalog'::regnamespace AND o.prokind <> 'p'
          AND o.proname IN (SELECT unnest(string_to_array('@words@', ' ')))
        UNION
        SELECT o.proname, a || coalesce(',' || b, ''), min(o.prorettype::regtype::text)::regtype
        FROM pg_proc o, unnest(types) a, unnest(types || NULL::text) b
        WHERE o.pronamespace = 'pg_catalog'::regnamespace AND o.prokind <> 'p' AND o.pronargs IN (1, 2)
          AND o.proname IN (SELECT unnest(string_to_array('@words@', ' ')))
        GROUP BY 1, 2 LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION %s.%I(%s) RETURNS %s ', s, p.proname, p.arguments, p.gives) || body;
        planted := planted + 1;
      EXCEPTION WHEN OTHERS THEN
        NULL;  -- no such type of argument in PL/pgSQL, or it is there
      END;
    END LOOP;
    FOR p IN SELECT DISTINCT o.oprname,
          bool_or(o.oprresult = 'boolean'::regtype) AS asks FROM pg_operator o
        WHERE o.oprname IN ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '||', '&', '%')
        GROUP BY 1 LOOP
      FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
          EXECUTE format('CREATE OPERATOR %s.%s (FUNCTION = trap.%s, LEFTARG = %s, RIGHTARG = %s)',
            s, p.oprname, CASE WHEN p.asks THEN 'asks' ELSE 'makes' END, l, r);
          planted := planted + 1;
        END LOOP;
      END LOOP;
    END LOOP;
  END LOOP;
  IF planted < 10000 THEN
    RAISE 'only % are planted', planted;
  END IF;
END $plant$;
)sql";

/// All words of weir's schema and of the statements that its client sends.
std::string words() {
  auto const sql = postgres_migration_sql({}) + " current_setting pg_backend_pid";
  std::regex const word{"[a-z_][a-z0-9_]*"};
  std::set<std::string> const all{std::sregex_token_iterator{sql.begin(), sql.end(), word},
                                  std::sregex_token_iterator{}};
  std::string out;
  for (auto const& w : all) out += w + ' ';
  return out;
}

std::string planted_database() {
  auto sql = std::string{planting};
  for (auto at = sql.find("@words@"); at != sql.npos; at = sql.find("@words@")) {
    sql.replace(at, 7, words());
  }
  auto const name = bed::fresh("search_path = \"$user\", public, pg_catalog");
  // Tests do not run what is planted.
  connection{the_server().conninfo(name) + " options='-c search_path=pg_catalog'"}.must(sql);
  return name;
}

/// As postgres_driver, in that database.
class planted_driver {
 public:
  using store = postgres_cluster;

  planted_driver() {
    boost::asio::io_context io;
    postgres_store const first{io.get_executor(), the_server().conninfo(database_), quick()};
    BOOST_TEST_REQUIRE(!migrate(io, first));
    BOOST_TEST(planted_that_ran() == 0);
    stop_clock(db_);
    grant_least(db_);
  }

  void advance(duration d) { advance_clock(db_, d); }
  [[nodiscard]] capabilities declared() const {
    capabilities c;
    c.ends_are_final = false;
    return c;
  }
  store make(boost::asio::any_io_executor const& ex) {
    empty_tables(db_);
    return store{ex, conninfo(), quick()};
  }

  result<command::enqueue_jobs::result> transact(store&, command::enqueue_jobs const& c,
                                                 bool commit) {
    connection own{conninfo()};
    own.must("BEGIN");
    postgres_transaction tx{own.get()};
    auto answer = tx.execute(c);
    own.must(commit ? "COMMIT" : "ROLLBACK");
    return answer;
  }

  [[nodiscard]] std::int64_t planted_that_ran() {
    return db_.number("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM trap.ran");
  }
  [[nodiscard]] std::string conninfo() const {
    return the_server().conninfo(database_) + " options='-c role=least'";
  }
  [[nodiscard]] connection& db() noexcept { return db_; }

 private:
  std::string database_ = planted_database();
  connection db_{the_server().conninfo(database_) + " options='-c search_path=pg_catalog'"};
};

BOOST_AUTO_TEST_SUITE(postgres_planted)

BOOST_AUTO_TEST_CASE(F89_nothing_that_another_role_planted_is_executed) {
  planted_driver driver;
  settings s;
  s.only = "generated";  // all steps
  s.histories = 3;
  report found;
  suite::of<permit_commands>(driver, found, s);
  suite::of<lock_commands>(driver, found, s);
  suite::of<bucket_commands>(driver, found, s);
  suite::of<job_commands>(driver, found, s);
  require_postgres(found);
  BOOST_TEST(driver.planted_that_ran() == 0);

  // Waiting, and what a store does by itself.
  boost::asio::io_context io;
  auto o = quick();
  o.tidy_interval = 10ms;
  postgres_store const store{io.get_executor(), driver.conninfo(), o};
  auto const wait = start(store, command::await_jobs{});
  auto const permit = start(store, command::await_permit{"k", "h"});
  finish(io, *permit);
  std::vector<new_job> const jobs{job_of(1, "key"), job_of(2)};
  BOOST_TEST(ask(io, store, command::enqueue_jobs{"q", jobs}).has_value());
  finish(io, *wait);
  BOOST_TEST(!**wait);
  BOOST_TEST(weir_test::happens(
      [&] { return ask(io, store, command::find_job{"q", id(1)}).has_value(); }));
  BOOST_TEST(driver.planted_that_ran() == 0);

  // In a session of an application's there are, in addition, tables and types of its own.
  connection own{driver.conninfo()};
  own.must(R"sql(SET search_path = "$user", public, pg_catalog;
CREATE FUNCTION pg_temp.fires() RETURNS boolean LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_catalog.nextval(''trap.ran''); RETURN true; END';
DO $$
DECLARE
  n text;
BEGIN
  FOREACH n IN ARRAY '{pg_locks,pg_database,pg_class,pg_namespace,pg_roles}'::text[] LOOP
    EXECUTE pg_catalog.format(
      'CREATE TEMP VIEW %I AS SELECT c.* FROM pg_catalog.%1$I c WHERE pg_temp.fires()', n);
  END LOOP;
  FOREACH n IN ARRAY '{text,bytea,uuid,int8,int4,int2,bool,numeric,tid,regclass}'::text[] LOOP
    EXECUTE pg_catalog.format(
      'CREATE DOMAIN pg_temp.%I AS pg_catalog.%1$I CHECK (pg_temp.fires())', n);
  END LOOP;
END $$;
BEGIN)sql");
  auto const before = driver.planted_that_ran();
  postgres_transaction tx{own.get()};
  BOOST_TEST(tx.execute(command::enqueue_jobs{"r", jobs}).has_value());
  BOOST_TEST(tx.execute(command::scan_visible_queues{}).has_value());
  auto const taken = tx.execute(command::dequeue_jobs{"r", "h", 1, 2, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  auto const& one = taken->jobs[0];
  BOOST_TEST(tx.execute(command::start_job{"r", one.id, one.fence}).has_value());
  BOOST_TEST(tx.execute(command::bury_job{"r", one.id, one.fence, "why"}).has_value());
  BOOST_TEST(tx.execute(command::list_dead_letters{"r", 10, {}}).has_value());
  BOOST_TEST(tx.execute(command::replay_dead_letter{"r", one.id}).has_value());
  BOOST_TEST(tx.execute(command::read_queue_stats{"r"}).has_value());
  BOOST_TEST(tx.execute(take_lock("k")).has_value());
  BOOST_TEST(tx.execute(command::acquire_permit{"k", "h", 1, 1h}).has_value());
  std::vector<quota> const quotas{quota::per_second(10)};
  BOOST_TEST(tx.execute(command::take{"k", quotas}).has_value());
  BOOST_TEST(tx.execute(command::peek_jobs{"r", 10}).has_value());
  own.must("COMMIT");
  BOOST_TEST(driver.planted_that_ran() == before);
  // It would be noticed: what a statement that is not pinned calls does run.
  own.must("SELECT length('x'::text)");
  BOOST_TEST(driver.planted_that_ran() > before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
