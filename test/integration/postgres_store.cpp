// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What becomes of a store whose server, connections or settings are not as it wishes: every error
// has a name, nothing hangs, and what was acknowledged stays.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace postgres_test;

BOOST_AUTO_TEST_SUITE(postgres_store_)

BOOST_AUTO_TEST_CASE(a_database_is_migrated_once_and_a_mismatch_is_said) {
  auto const conninfo = the_server().conninfo(bed::fresh(""));
  boost::asio::io_context io;
  auto const make = [&](postgres_options const& o) {
    return postgres_store{io.get_executor(), conninfo, o};
  };
  auto const store = make({});
  BOOST_TEST((ask(io, store, take_lock("k")).error() == errc::schema_outdated));

  std::vector<error_code> ended;
  for (int i = 0; i < 4; ++i) {
    make({}).async_migrate([&](error_code ec) { ended.push_back(ec); });
  }
  io.restart();
  io.run();
  BOOST_TEST(ended.size() == 4U);
  for (auto const& ec : ended) BOOST_TEST(!ec, ec.message());
  BOOST_TEST(ask(io, store, take_lock("k")).has_value());
  BOOST_TEST(!migrate(io, store));
  BOOST_TEST(!ask(io, store, take_lock("k", "other"))->granted);

  postgres_options o;
  o.shards = 3;
  BOOST_TEST((ask(io, make(o), take_lock("k")).error() == errc::invalid_option));
  BOOST_TEST((migrate(io, make(o)) == errc::invalid_option));
  o = {};
  o.schema = "nobody's; DROP SCHEMA weir";
  BOOST_TEST((ask(io, make(o), take_lock("k")).error() == errc::invalid_option));
  BOOST_TEST((migrate(io, make(o)) == errc::invalid_option));
  BOOST_TEST(postgres_migration_sql(o).empty());
  o.schema = "another_one";
  o.shards = 3;
  BOOST_TEST(!migrate(io, make(o)));
  BOOST_TEST(ask(io, make(o), take_lock("k", "other"))->granted);
  BOOST_TEST((ask(io, make(o), command::list_queues{3, 10, {}}).error() == errc::invalid_shard));
  BOOST_TEST(ask(io, make(o), command::list_queues{2, 10, {}}).has_value());

  connection db{conninfo};
  db.must("UPDATE weir.state SET version = version + 1");
  BOOST_TEST((ask(io, make({}), take_lock("k")).error() == errc::schema_too_new));
  BOOST_TEST((migrate(io, make({})) == errc::schema_too_new));
  // A schema that no release has made is not taken for this version, however alike it is.
  db.must("UPDATE weir.state SET version = 1");
  for (auto const& ec : {ask(io, make({}), take_lock("k")).error(), migrate(io, make({}))}) {
    BOOST_TEST((ec == errc::schema_outdated));
    BOOST_TEST(ec.message().find("never released") != std::string::npos, ec.message());
  }
  BOOST_TEST(postgres_migration_sql({}, 1).empty());
  BOOST_TEST(!postgres_migration_sql({}, 1, 0).empty());
  db.must("UPDATE weir.state SET version = " + std::to_string(postgres_schema_version));
  db.must(postgres_migration_sql({}, postgres_schema_version, 0));
  BOOST_TEST((ask(io, make({}), take_lock("k")).error() == errc::schema_outdated));
  db.must(postgres_migration_sql({}));
  BOOST_TEST(ask(io, make({}), take_lock("k")).has_value());
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_there_is_said_and_found_later) {
  boost::asio::io_context io;
  bed const there;
  weir::testing::fault_proxy const proxy{
      io.get_executor(), {boost::asio::ip::address_v4::loopback(), the_server().port()}};
  proxy.async_refuse(true);
  postgres_store const store{io.get_executor(),
                             server::conninfo_to(proxy.endpoint().port(), there.database), quick()};
  for (int i = 0; i < 3; ++i) {
    auto const ended = start(store, take_lock("k"));
    finish(io, *ended);
    BOOST_TEST((**ended == errc::store_unavailable));
  }
  proxy.async_refuse(false);
  auto const ended = start(store, take_lock("k"));
  finish(io, *ended);
  BOOST_TEST(!**ended, (*ended)->message());
  proxy.async_close();
  postgres_store const nonsense{io.get_executor(), "no such = thing"};
  auto const said = start(nonsense, take_lock("k"));
  finish(io, *said);
  BOOST_TEST((**said == errc::invalid_option));
}

BOOST_AUTO_TEST_CASE(a_backend_that_was_ended_while_idle_costs_nobody_an_error) {
  bed b;
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST(b(take_lock("k" + std::to_string(i))).value().granted);
    end_all_backends(b.db);
    std::this_thread::sleep_for(20ms);  // for the news to arrive: what is on its way is not known
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.locks") == 5);
}

// F45, F46
BOOST_AUTO_TEST_CASE(a_backend_that_is_ended_at_work_has_done_nothing_and_says_so) {
  bed b;
  let_locks_take_long(b.db);
  BOOST_TEST(b(take_lock("a")).has_value());
  for (std::string const how : {"pg_terminate_backend", "pg_cancel_backend"}) {
    b.db.must("BEGIN; LOCK TABLE weir.locks");
    auto const first = start(b.store, take_lock("b"));
    auto const second = start(b.store, take_lock("c"));
    until_somebody_waits(b.io, b.database);
    // Not by who has the lock: its transaction sees who was there when it began to look.
    connection{the_server().conninfo(b.database)}.must(
        "SELECT count(" + how +
        "(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()");
    finish(b.io, *first);
    BOOST_TEST((**first == errc::store_unavailable), (*first)->message());
    b.db.must("COMMIT");
    finish(b.io, *second);
    if (how == "pg_terminate_backend") BOOST_TEST(lost(**second), (*second)->message());
    BOOST_TEST(!b(command::inspect_lock{"b"})->held);
    BOOST_TEST(b(command::release_lock{"c", "h"}).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_server_that_is_killed_and_started_again_has_what_it_acknowledged) {
  bed b;
  std::vector<std::string> keys(60);
  std::vector<std::shared_ptr<std::optional<error_code>>> ended;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = "k" + std::to_string(i);
    ended.push_back(start(b.store, take_lock(keys[i])));
  }
  finish(b.io, *ended[10]);
  the_server().kill(SIGKILL);
  for (auto const& e : ended) finish(b.io, *e);
  the_server().start();
  connection db{the_server().conninfo(b.database)};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const& ec = **ended[i];
    BOOST_TEST((!ec || lost(ec)), ec.message());
    auto const held = ask(b.io, b.store, command::inspect_lock{keys[i]});
    // The first ones may still find the server on its knees.
    if (held.has_error()) continue;
    if (!ec) BOOST_TEST(held->held, keys[i] << " was acknowledged");
    if (ec == errc::store_unavailable) BOOST_TEST(!held->held, keys[i] << " was not executed");
  }
  BOOST_TEST(ask(b.io, b.store, take_lock("later")).has_value());
}

// How many there are, and who they are, is looked at once.
BOOST_AUTO_TEST_CASE(R1_a_census_of_permits_is_of_one_moment) {
  bed b{quick(), "synchronous_commit = off"};
  b.db.must("INSERT INTO weir.permits SELECT 'key', i::text::bytea, false, i, " +
            std::to_string(std::numeric_limits<std::int64_t>::max()) +
            " FROM generate_series(1, 9000) i");

  // One more comes and goes, as fast as it can.
  postgres_store const other{b.io.get_executor(), the_server().conninfo(b.database), quick()};
  bool over = false;
  bool gone = false;
  std::function<void(bool)> turn = [&](bool comes) {
    gone = over;
    if (over) return;
    auto const next = [&, comes](error_code ec, auto const&) {
      BOOST_TEST(!ec, ec.message());
      turn(!comes);
    };
    if (comes) {
      other.async_execute(command::acquire_permit{"key", "another", limits::permits, 1h}, next);
    } else {
      other.async_execute(command::release_permit{"key", "another"}, next);
    }
  };
  turn(true);
  int torn = 0;
  for (int i = 0; i < 100; ++i) {
    auto const census = b(command::inspect_permits{"key", limits::batch}).value();
    torn += census.in_use == census.holders.size() ? 0 : 1;
  }
  BOOST_TEST(torn == 0);
  over = true;
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return gone; }));
}

BOOST_AUTO_TEST_CASE(what_the_server_refuses_has_a_name_and_changes_nothing) {
  bed at_work;
  let_locks_take_long(at_work.db);
  postgres_store const hurried{
      at_work.io.get_executor(),
      the_server().conninfo(at_work.database) + " options='-c statement_timeout=300ms'", quick()};
  at_work.db.must("BEGIN; LOCK TABLE weir.locks");
  BOOST_TEST((ask(at_work.io, hurried, take_lock("b")).error() == errc::store_unavailable));
  at_work.db.must("COMMIT");
  BOOST_TEST(!at_work(command::inspect_lock{"b"})->held);
  BOOST_TEST(at_work(take_lock("b")).has_value());

  bed b;  // with no connection yet
  b.db.must("ALTER DATABASE " + b.database + " SET default_transaction_read_only = on");
  BOOST_TEST((b(take_lock("a")).error() == errc::store_read_only));
  BOOST_TEST(b(command::inspect_lock{"a"}).has_value());
  b.db.must("ALTER DATABASE " + b.database +
            " RESET default_transaction_read_only; "
            "CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA weir TO guest; "
            "GRANT SELECT ON weir.state TO guest");
  postgres_store const guest{
      b.io.get_executor(), the_server().conninfo(b.database) + " options='-c role=guest'", quick()};
  BOOST_TEST((ask(b.io, guest, take_lock("a")).error() == errc::permission_denied));
  b.db.must("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weir TO guest; "
            "GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA weir TO guest");
  BOOST_TEST(ask(b.io, guest, take_lock("a"))->granted);
}

// weir's own transactions are READ COMMITTED: what waited for a lock goes on with what is there
// then.
BOOST_AUTO_TEST_CASE(no_command_fails_because_of_the_default_isolation) {
  for (std::string const level : {"serializable", "repeatable read", "read committed"}) {
    bed b{quick(), "default_transaction_isolation = '" + level + "'"};
    let_locks_take_long(b.db);
    b.db.must("BEGIN; LOCK TABLE weir.locks");  // so that all connections get to work
    std::vector<std::string> holders(80);
    std::vector<std::shared_ptr<std::optional<error_code>>> ended;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      holders[i] = "h" + std::to_string(i);
      ended.push_back(start(b.store, command::acquire_lock{"k", holders[i], 1h}));
    }
    until_somebody_waits(b.io, b.database, 3);
    b.db.must("COMMIT");
    for (auto const& e : ended) {
      finish(b.io, *e);
      BOOST_TEST(!**e, level << ": " << (*e)->message());
    }
    BOOST_TEST(b(command::inspect_lock{"k"})->held);
  }
}

/// A store that is reached by a proxy.
struct by_proxy {
  bed there{};
  boost::asio::io_context io{};
  weir::testing::fault_proxy const proxy{
      io.get_executor(), {boost::asio::ip::address_v4::loopback(), the_server().port()}};
  postgres_store const store{
      io.get_executor(),
      server::conninfo_to(proxy.endpoint().port(), there.database) + " sslmode=disable", [] {
        auto o = quick();
        o.command_timeout = 2s;
        return o;
      }()};
};

BOOST_AUTO_TEST_CASE(a_connection_that_is_cut_or_silent_leaves_the_outcome_unknown) {
  by_proxy way;
  auto& io = way.io;
  auto const& proxy = way.proxy;
  auto const& store = way.store;
  auto const must_end = [&](std::string_view key, errc how) {
    auto const ended = start(store, take_lock(key));
    finish(io, *ended);
    BOOST_TEST((**ended == how), key << ": " << (*ended)->message());
    std::shared_ptr<std::optional<error_code>> again;
    do {  // a server that is slower than that to answer is asked once more
      again = start(store, take_lock(key));
      finish(io, *again);
    } while (**again == errc::outcome_unknown);
    BOOST_TEST(!**again, key << ": " << (*again)->message());
  };
  // To the server: 0 is the start of the connection, 1 the greeting, 2 the command.
  using weir::testing::proxy_fault;
  using weir::testing::traffic;
  auto const fresh = [&] {  // the next command makes a new connection
    auto const before = proxy.counts();
    proxy.async_cut_all(weir::testing::proxy_ending::fin);
    while (before.accepted != 0 && proxy.counts().cut_all == before.cut_all) {
      io.restart();
      io.run_one_for(50ms);
    }
  };
  for (auto const fault : {proxy_fault::cut_before, proxy_fault::cut_in, proxy_fault::cut_after,
                           proxy_fault::black_hole}) {
    fresh();
    proxy.script({{.fault = fault, .direction = traffic::to_server, .message = 2}});
    must_end("to the server " + std::to_string(static_cast<int>(fault)), errc::outcome_unknown);
  }
  for (auto const fault : {proxy_fault::cut_before, proxy_fault::black_hole}) {
    fresh();
    proxy.script({{.fault = fault, .direction = traffic::to_client, .message = 2}});
    must_end("to the client " + std::to_string(static_cast<int>(fault)), errc::outcome_unknown);
  }
  proxy.async_close();
  io.restart();
  io.run_for(50ms);
}

BOOST_AUTO_TEST_CASE(F86_a_migration_that_gets_no_answer_says_why) {
  by_proxy way;
  auto& io = way.io;
  auto const& proxy = way.proxy;
  auto const& store = way.store;
  using weir::testing::proxy_fault;
  for (auto const& [fault, why] : {std::pair{proxy_fault::cut_before, "server closed"},
                                   std::pair{proxy_fault::black_hole, "command_timeout"}}) {
    proxy.script({{.fault = fault, .direction = weir::testing::traffic::to_server, .message = 1}});
    std::optional<error_code> said;
    store.async_migrate([&](error_code ec) { said = ec; });
    BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return said.has_value(); }));
    BOOST_TEST((*said == errc::outcome_unknown), said->message());
    BOOST_TEST((said->message().find(why) != std::string::npos), said->message());
  }
  proxy.async_close();
  io.restart();
  io.run_for(50ms);
}

// R7
BOOST_AUTO_TEST_CASE(commands_are_cancelled_wherever_they_are_and_die_with_their_context) {
  bed b;
  let_locks_take_long(b.db);
  b.db.must("BEGIN; LOCK TABLE weir.locks");
  auto o = quick();
  o.connections = 1;
  o.pipeline = 1;
  postgres_store const store{b.io.get_executor(), the_server().conninfo(b.database), o};
  boost::asio::cancellation_signal signals[2];
  std::vector<error_code> ended;
  for (auto& s : signals) {
    store.async_execute(take_lock("k"),
                        boost::asio::bind_cancellation_slot(
                            s.slot(), [&](error_code ec, lock_grant) { ended.push_back(ec); }));
  }
  until_somebody_waits(b.io, b.database);  // one was sent, one waits for its turn
  for (auto& s : signals) s.emit(boost::asio::cancellation_type::terminal);
  BOOST_TEST(weir_test::happens(b.io, [&] { return ended.size() == 2; }));
  for (auto const& ec : ended) BOOST_TEST((ec == boost::asio::error::operation_aborted));
  b.db.must("COMMIT");
  BOOST_TEST(ask(b.io, store, take_lock("k", "h")).has_value());

  bool called = false;
  for (int const moments : {0, 1, 3, 10}) {
    boost::asio::io_context brief;
    postgres_store const dies{brief.get_executor(), the_server().conninfo(b.database), quick()};
    b.db.must("BEGIN; LOCK TABLE weir.locks");
    for (int i = 0; i < 40; ++i) {
      dies.async_execute(take_lock("k"), [&](error_code, lock_grant) { called = true; });
    }
    dies.async_migrate([&](error_code) {});
    for (int i = 0; i < moments; ++i) brief.run_one_for(5ms);
    b.db.must("COMMIT");
  }
  BOOST_TEST(!called);
}

BOOST_AUTO_TEST_CASE(a_closed_store_answers_what_was_sent_and_takes_nothing_more) {
  bed b;
  BOOST_TEST(b(take_lock("a")).has_value());
  auto const sent = start(b.store, take_lock("b"));
  b.io.restart();
  b.io.poll();
  b.store.close();
  auto const late = start(b.store, take_lock("c"));
  finish(b.io, *sent);
  finish(b.io, *late);
  BOOST_TEST(!**sent);
  BOOST_TEST((**late == errc::closed));
  b.io.restart();
  b.io.run();  // nothing keeps it
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.locks") == 2);
}

BOOST_AUTO_TEST_CASE(threads_share_a_store_and_its_connections) {
  bed b;
  let_locks_take_long(b.db);
  boost::asio::thread_pool pool{3};
  auto o = quick();
  o.connections = 3;
  postgres_store const store{pool.get_executor(), the_server().conninfo(b.database), o};
  std::atomic<int> granted{0};
  std::atomic<int> ended{0};
  std::vector<std::string> holders(300);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    holders[i] = "h" + std::to_string(i);
    store.async_execute(command::acquire_permit{"k", holders[i], 7, 1h},
                        [&](error_code ec, permit_grant g) {
                          if (!ec && g.granted) ++granted;
                          ++ended;
                        });
  }
  pool.join();
  BOOST_TEST(ended == 300);
  BOOST_TEST(granted == 7);
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_stat_activity "
                         "WHERE datname = current_database() AND pid <> pg_backend_pid()") <= 3);
}

// R2: whoever reads that the lease is over has the row to itself from then on.
BOOST_AUTO_TEST_CASE(a_lock_whose_lease_is_over_is_given_to_one_of_many) {
  auto o = quick();
  o.pipeline = 2;  // for the three connections that it takes
  bed b{o};
  let_locks_take_long(b.db);
  time_point const then{std::chrono::sys_days{std::chrono::year{2026} / 6 / 1}};
  BOOST_TEST(b(command::at<command::acquire_lock>{{"k", "h", 1s}, then}).has_value());
  // Who only looks gets past this lock, and who locks or writes does not.
  b.db.must("BEGIN; LOCK TABLE weir.locks IN EXCLUSIVE MODE");
  std::vector<std::string> holders{"a", "b", "c", "d", "e", "f"};
  int ended = 0;
  int granted = 0;
  for (auto const& h : holders) {
    command::at<command::acquire_lock> const asks{{"k", h, 1h}, then + 2s};
    b.store.async_execute(asks, [&](error_code ec, lock_grant g) {
      BOOST_TEST(!ec, ec.message());
      granted += g.granted ? 1 : 0;
      ++ended;
    });
  }
  until_somebody_waits(b.io, b.database, 3);
  b.db.must("COMMIT");
  b.io.restart();
  b.io.run();
  BOOST_TEST(ended == 6);
  BOOST_TEST(granted == 1);
}

// F16
BOOST_AUTO_TEST_CASE(a_lease_that_was_not_started_holds_no_run_lock) {
  bed b;
  std::vector<new_job> jobs{job_of(1, "key"), job_of(2, "key")};
  for (auto& j : jobs) j.strategy = unique_strategy::while_executing;
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const taken = b(command::dequeue_jobs{"q", "h", 1, 2, 1h});
  BOOST_TEST_REQUIRE(taken.has_value());
  BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
  auto const& first = taken->jobs[0];
  auto const& second = taken->jobs[1];
  auto const starts = [&](leased_job const& j) {
    auto const answer = b(command::start_job{"q", j.id, j.fence});
    return answer.has_value() && answer->outcome == start_outcome::started;
  };
  BOOST_TEST(starts(first));
  BOOST_TEST(!starts(second));
  BOOST_TEST(b(command::requeue_job{"q", first.id, first.fence, 0s, "no"}).has_value());
  BOOST_TEST(b(command::obtain_lease{"q", first.id, "h", 1h}).has_value());
  BOOST_TEST(starts(second));
}

// F44
BOOST_AUTO_TEST_CASE(nothing_that_is_held_keeps_a_transaction_open) {
  bed b;
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const taken = b(command::dequeue_jobs{"q", "h", 1, 1, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
  BOOST_TEST(b(command::start_job{"q", taken->jobs[0].id, taken->jobs[0].fence}).has_value());
  BOOST_TEST(b(command::acquire_permit{"k", "h", 1, 1h})->granted);
  BOOST_TEST(b(take_lock("k"))->granted);
  std::string const sessions = "SELECT count(*) FROM pg_stat_activity "
                               "WHERE datname = current_database() AND pid <> pg_backend_pid()";
  BOOST_TEST(b.db.number(sessions) > 0);
  // A session may be about to say that its last one is over; one that is kept open stays.
  auto const open = sessions + " AND backend_type = 'client backend' AND xact_start IS NOT NULL";
  BOOST_TEST(weir_test::happens([&] { return b.db.number(open) == 0; }));
}

// F11
BOOST_AUTO_TEST_CASE(what_time_has_ended_is_removed_by_a_store_that_is_used) {
  auto o = quick();
  o.tidy_interval = 10ms;
  bed b{o};
  quota const quotas[] = {quota::per_second(1000)};
  auto j = job_of(1, "key");
  j.strategy = unique_strategy::until_expired;
  j.unique_ttl = 1ms;
  j.retention = 1ms;
  std::vector<new_job> const jobs{j};
  for (int i = 0; i < 20; ++i) {
    auto const key = std::to_string(i);
    BOOST_TEST(b(command::acquire_lock{key, "h", 1ms})->granted);
    BOOST_TEST(b(command::acquire_permit{key, "h", 1, 1ms})->granted);
    BOOST_TEST(b(command::take{key, quotas})->allowed);
  }
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST((*b(command::cancel_job{"q", id(1)}) == cancel_outcome::cancelled));
  b.db.must("UPDATE weir.used_keys SET due = 1 WHERE due IS NOT NULL");  // as it is in a minute
  BOOST_TEST(weir_test::happens([&] {
               BOOST_TEST(b(command::inspect_lock{"x"}).has_value());
               auto const left = b.db.number(
                   "SELECT (SELECT count(*) FROM weir.locks) + (SELECT count(*) FROM weir.permits) "
                   "+ (SELECT count(*) FROM weir.permit_lines) + (SELECT count(*) FROM "
                   "weir.buckets) + (SELECT count(*) FROM weir.jobs) + (SELECT count(*) FROM "
                   "weir.ended) + (SELECT count(*) FROM weir.keys) + (SELECT count(*) FROM "
                   "weir.used_keys)");
               return left == 0;
             }),
             "something is still there");
}

// Removing goes on without any more commands.
BOOST_AUTO_TEST_CASE(F78_what_time_has_ended_is_removed_however_much_it_is) {
  auto o = quick();
  o.tidy_interval = 10ms;
  bed b{o};
  auto const fill = [&](int locks) {
    b.db.must(
        "INSERT INTO weir.locks (key, due, holder, fence, until) "
        "SELECT int4send(i), 1, 'h', 1, 1 FROM generate_series(1, " +
        std::to_string(locks) +
        ") i; INSERT INTO weir.used_keys SELECT 2, key FROM weir.locks ON CONFLICT DO NOTHING");
  };
  auto const left = [&] {
    return b.db.number("SELECT (SELECT count(*) FROM weir.locks) + (SELECT count(*) FROM "
                       "weir.permits) + (SELECT count(*) FROM weir.permit_lines)");
  };
  fill(5000);
  b.db.must("INSERT INTO weir.permit_lines (key, due, live, waiting, turn, fence, soonest) "
            "SELECT int4send(i), 1, 20, 0, 0, 20, 1 FROM generate_series(1, 200) i; INSERT INTO "
            "weir.permits "
            "SELECT int4send(i), int4send(n), false, n, 1 "
            "FROM generate_series(1, 200) i, generate_series(1, 20) n");
  BOOST_TEST(weir_test::happens([&] {
    BOOST_TEST(b(command::inspect_lock{"x"}).has_value());
    return left() < 9000;
  }));
  BOOST_TEST(weir_test::happens(b.io, [&] { return left() == 0; }));
  b.io.restart();
  b.io.run();  // and then nothing keeps it

  fill(50'000);
  {
    postgres_store const brief{b.io.get_executor(), the_server().conninfo(b.database), o};
    BOOST_TEST(weir_test::happens([&] {
      BOOST_TEST(ask(b.io, brief, command::inspect_lock{"x"}).has_value());
      return left() < 50'000;
    }));
  }
  b.io.restart();
  b.io.run();  // nor does anything once nobody has the store
  BOOST_TEST(left() > 0);
}

BOOST_AUTO_TEST_CASE(F83_a_queue_that_is_empty_and_left_alone_is_forgotten) {
  auto o = quick();
  o.tidy_interval = 10ms;
  bed b{o};
  new_job job;
  job.kind = "kind";
  job.retention = duration{};
  for (int i = 0; i != 40; ++i) {
    job.id = id(static_cast<std::uint8_t>(i + 1));
    std::array const one{job};
    auto const queue = "q" + std::to_string(i);
    BOOST_TEST(b(command::enqueue_jobs{queue, one}).has_value());
    if (i < 20) BOOST_TEST((*b(command::cancel_job{queue, job.id}) == cancel_outcome::cancelled));
  }
  auto const rows = [&](std::string const& where) {
    return b.db.number("SELECT count(*) FROM weir.counters WHERE " + where);
  };
  auto const tidied = [&](std::string const& where, std::int64_t left) {
    return weir_test::happens([&] {
      BOOST_TEST(b(command::inspect_lock{"x"}).has_value());
      return rows(where) == left;
    });
  };
  // Of one row alone the sums would be wrong.
  b.db.must(
      "INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead) "
      "SELECT queue, shard, 0, 0, 0, 0, 0 FROM weir.counters WHERE queue = 'q0'");
  // Held: these keep what is known of them. And two that were held and are not.
  BOOST_TEST(b(command::pause_queue{"q2"}).has_value());
  BOOST_TEST(b(command::snooze_queue{"q3", 1h}).has_value());
  BOOST_TEST(b(command::obtain_queue_lease{"q4", "h", 1h})->granted);
  BOOST_TEST(b(command::obtain_queue_lease{"q5", "h", 1h})->granted);
  BOOST_TEST(b(command::release_queue_lease{"q5", "h"})->freed);
  BOOST_TEST(b(command::pause_queue{"never used"}).has_value());
  BOOST_TEST(b(command::resume_queue{"never used"}).has_value());
  b.db.must("UPDATE weir.counters SET day = day - 9 WHERE queue <> 'q1' AND ctid <> "
            "(SELECT min(ctid) FROM weir.counters WHERE queue = 'q0')");
  BOOST_TEST(tidied("day < weir.day() - 2", 0));
  BOOST_TEST(rows("queue = 'q0'") == 2);
  BOOST_TEST(rows("queue = 'q1'") == 1);
  BOOST_TEST(rows("queue IN ('q2', 'q3', 'q4')") == 3);
  BOOST_TEST(rows("true") == 26);  // these, and those of which each has a job
  BOOST_TEST(b(command::read_queue_stats{"q2"})->cancelled == 1U);
  BOOST_TEST(weir_test::happens([&] {
    BOOST_TEST(b(command::inspect_lock{"x"}).has_value());
    return b.db.number("SELECT count(*) FROM weir.queues") == 3;
  }));
  BOOST_TEST(b(command::read_queue_stats{"q30"})->pending == 1U);
  auto const none = b(command::read_queue_stats{"q10"});
  BOOST_TEST(none->enqueued == 0U);
  BOOST_TEST(none->pending == 0U);
}

// Once it is left alone there is nobody to ask for it.
BOOST_AUTO_TEST_CASE(F78_a_flood_is_removed_while_it_comes) {
  auto o = quick();
  o.tidy_interval = 1h;
  bed b{o};
  std::array const quotas{quota::per_second(1000)};
  for (int i = 0; i != 6000; ++i) {
    BOOST_TEST(b(command::take{"flood " + std::to_string(i), quotas})->allowed);
  }
  BOOST_TEST(weir_test::happens(
      b.io, [&] { return b.db.number("SELECT count(*) FROM weir.buckets") < 2500; }));
}

BOOST_AUTO_TEST_CASE(what_is_live_at_a_told_time_is_not_tidied_by_the_server_s_clock) {
  auto o = quick();
  o.tidy_interval = 10ms;
  bed b{o};
  time_point const then = std::chrono::sys_days{std::chrono::year{2020} / 1 / 1};
  auto const at = [&](auto const& c) { return b(command::at{c, then}); };
  BOOST_TEST(at(command::acquire_lock{"key", "h", 1h})->granted);
  BOOST_TEST(at(command::acquire_permit{"key", "h", 1, 1h})->granted);
  auto const start = system_clock::steady_now();
  // Longer than it waits between two times, whatever it does then.
  BOOST_TEST(weir_test::happens([&] {
    BOOST_TEST(at(command::inspect_lock{"other"}).has_value());
    return system_clock::steady_now() - start > 10 * o.tidy_interval;
  }));
  BOOST_TEST(at(command::inspect_lock{"key"})->held);
  BOOST_TEST(at(command::inspect_permits{"key"})->in_use == 1U);
}

// A statement that was prepared for a function is of no use once the function is another one. It
// was not executed then, and is sent once more.
BOOST_AUTO_TEST_CASE(functions_may_be_replaced_under_a_store_that_is_connected) {
  auto o = quick();
  o.connections = 1;
  bed b{o};
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  BOOST_TEST(b(command::min_vesting_time{"q"})->has_value());
  b.db.must("DROP FUNCTION weir.min_vesting_time; "
            "CREATE FUNCTION weir.min_vesting_time(bytea, bigint) RETURNS integer LANGUAGE sql AS "
            "'SELECT 7'");
  for (int i = 0; i < 3; ++i) {
    auto const now = b(command::min_vesting_time{"q"});
    BOOST_TEST_REQUIRE(now.has_value());
    BOOST_TEST((*now == duration{7}));
  }
  BOOST_TEST(b(command::peek_jobs{"q", 1})->size() == 1U);
}

// What the server cannot prepare yet is not taken for prepared.
BOOST_AUTO_TEST_CASE(a_function_that_was_not_there_is_found_once_it_is) {
  auto o = quick();
  o.connections = 1;
  bed b{o};
  BOOST_TEST(b(command::inspect_lock{"k"}).has_value());
  b.db.must("ALTER FUNCTION weir.min_vesting_time RENAME TO away");
  auto const ec = b(command::min_vesting_time{"q"}).error();
  BOOST_TEST((ec == errc::schema_outdated));
  BOOST_TEST(ec.message().ends_with("is another: call async_migrate"), ec.message());
  b.db.must("ALTER FUNCTION weir.away RENAME TO min_vesting_time");
  BOOST_TEST(!b(command::min_vesting_time{"q"}).value().has_value());
}

// A store that is connected notices a later version where that has not what it calls.
BOOST_AUTO_TEST_CASE(a_later_version_is_noticed_by_who_is_connected) {
  bed b;
  BOOST_TEST(b(take_lock("k")).has_value());
  b.db.must("UPDATE weir.state SET version = version + 1");
  BOOST_TEST(b(take_lock("k")).has_value());
  b.db.must("DROP FUNCTION weir.min_vesting_time");
  BOOST_TEST((b(command::min_vesting_time{"q"}).error() == errc::schema_outdated));
  BOOST_TEST((b(command::min_vesting_time{"q"}).error() == errc::schema_too_new));
  BOOST_TEST((b(take_lock("k")).error() == errc::schema_too_new));
  BOOST_TEST((b.store.last_failure().error == errc::schema_too_new));
}

// It had a row for each unique key that is taken. Nobody who uses the other tables is waited for.
BOOST_AUTO_TEST_CASE(a_database_of_version_6_keeps_the_unique_keys_of_its_jobs) {
  bed b;
  std::array jobs{job_of(1, "waits"), job_of(2, "runs"), job_of(3, "expires"), job_of(4, "waits")};
  jobs[1].strategy = unique_strategy::until_and_while_executing;
  jobs[1].priority = 0;
  jobs[2].strategy = unique_strategy::until_expired;
  jobs[2].unique_ttl = 1h;
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const runs = b(command::dequeue_jobs{"q", "h", 0, 1, 1h})->jobs.at(0);
  auto const start = [&](leased_job const& j) {
    return b(command::start_job{"q", j.id, j.fence})->outcome;
  };
  BOOST_TEST((start(runs) == start_outcome::started));
  auto const functions = [&] {
    return b.db.must("SELECT string_agg(pg_get_functiondef(oid), E'\\n' ORDER BY proname) FROM "
                     "pg_proc WHERE pronamespace = 'weir'::regnamespace");
  };
  auto const now = functions();
  b.db.must(as_version_6);
  b.db.must("UPDATE weir.state SET version = 5; CREATE OR REPLACE FUNCTION weir.claim_bytes("
            "j weir.jobs) RETURNS bigint LANGUAGE sql IMMUTABLE RETURN NULL::bigint");
  boost::asio::io_context io;
  postgres_store const store{io.get_executor(), the_server().conninfo(b.database), quick()};
  auto const ec = ask(io, store, take_lock("k")).error();
  BOOST_TEST((ec == errc::schema_outdated));
  BOOST_TEST(ec.message().ends_with("postgres_migration_sql(options, 5)"), ec.message());
  connection running{the_server().conninfo(b.database)};
  running.must("BEGIN; SELECT 1 FROM weir.state; LOCK TABLE weir.counters IN ROW EXCLUSIVE MODE");
  bool migrated = false;
  store.async_migrate([&](error_code e) {
    BOOST_TEST(!e, e.message());
    migrated = true;
  });
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return migrated; }));
  BOOST_TEST((functions() == now));
  BOOST_TEST(b.db.number("SELECT version FROM weir.state") == postgres_schema_version);
  BOOST_TEST(b(take_lock("k")).has_value());

  std::array more{job_of(5, "waits"), job_of(6, "runs"), job_of(7, "expires")};
  more[1].strategy = unique_strategy::until_and_while_executing;
  more[1].priority = 0;
  auto const added = b(command::enqueue_jobs{"q", more}).value();
  BOOST_TEST((added[0].other == id(1)));
  BOOST_TEST((added[1].outcome == enqueue_outcome::enqueued));
  BOOST_TEST((added[2].other == id(3)));
  auto const waits = b(command::dequeue_jobs{"q", "h", 0, 1, 1h})->jobs.at(0);
  BOOST_TEST((start(waits) == start_outcome::blocked));
  std::array const done{finished_job{runs.id, runs.fence, {}}};
  BOOST_TEST(b(command::complete_jobs{"q", done}).has_value());
  BOOST_TEST((start(waits) == start_outcome::started));
  BOOST_TEST(b(command::cancel_job{"q", id(1)}).has_value());
  BOOST_TEST(b(command::cancel_job{"q", id(3)}).has_value());
  auto const again = b(command::enqueue_jobs{"q", more}).value();
  BOOST_TEST((again[0].outcome == enqueue_outcome::enqueued));
  BOOST_TEST((again[2].other == id(3)));
}

BOOST_AUTO_TEST_SUITE_END()
