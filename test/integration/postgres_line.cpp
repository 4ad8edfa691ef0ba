// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Many who want permits of one key: their steps travel together, a release tells the next one and
// nobody else (F68), and who waits for a lock on the key holds up nobody else (F50).

#include "postgres_bed.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;
using weir_test::happens;
namespace asio = boost::asio;

postgres_options relying_on_news() {
  auto o = quick();
  o.poll_interval = 1h;
  return o;
}

struct line : bed {
  line() : bed{relying_on_news(), "track_functions = 'all'"} { ear.must("LISTEN weir"); }

  permit_grant in_line(postgres_store const& by, std::string_view holder, duration patience) {
    return ask(io, by, command::acquire_permit{"key", holder, 1, 1h, patience}).value();
  }
  lease_release leave(std::string_view holder) {
    return (*this)(command::release_permit{"key", holder, 0}).value();
  }
  using ending = std::shared_ptr<std::optional<error_code>>;
  ending turn(postgres_store const& by, std::string_view holder) {
    return start(by, command::await_permit{"key", holder});
  }
  /// Until a store of each process has looked, and will hear what comes.
  void until_all_hear(int processes) {
    BOOST_TEST_REQUIRE(happens(io, [&] {
      return db.number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND "
                       "datname = current_database()") == processes + 1;
    }));
    pause();
  }
  /// Has the store make all of its connections.
  void connect_all() {
    db.must("BEGIN; LOCK TABLE weir.locks");
    std::vector<ending> busy;
    for (int i = 0; i != 80; ++i) busy.push_back(start(store, take_lock("any")));
    until_somebody_waits(io, database, 3);
    db.must("COMMIT");
    for (auto const& each : busy) finish(io, *each);
  }
  void pause() {
    io.restart();
    io.run_for(100ms);
  }
  /// How many notifications have come since the last time.
  int told() {
    ear.must("SELECT 1");
    int n = 0;
    while (auto* const news = PQnotifies(ear.get())) {
      PQfreemem(news);
      ++n;
    }
    return n;
  }

  connection ear{the_server().conninfo(database)};
  postgres_store other{io.get_executor(), the_server().conninfo(database), relying_on_news()};
};

struct costs {
  std::size_t grants = 0;
  std::int64_t calls = 0;  // of functions
  std::int64_t rows = 0;   // of permits, looked up
};

/// What it takes that so many take turns with 4 permits.
costs take_turns(std::size_t waiters) {
  costs out;
  bed b{relying_on_news(), "track_functions = 'all'"};
  {
    asio::io_context io;
    postgres_store const store{io.get_executor(), the_server().conninfo(b.database),
                               relying_on_news()};
    // Tickets are not renewed while this runs, and no lost notification is made up for.
    limiter const some{store, {.limit = 4, .ttl = 1h, .poll = 1h}};
    std::size_t ended = 0;
    bool over = false;
    for (std::size_t i = 0; i != waiters; ++i) {
      asio::co_spawn(
          io,
          [&]() -> asio::awaitable<void> {
            while (!over) {
              auto held = co_await some.async_acquire("key");
              ++out.grants;
              co_await some.async_release(std::move(held));
            }
          },
          [&](std::exception_ptr const& e) {
            BOOST_TEST(!e);
            ++ended;
          });
    }
    BOOST_TEST_REQUIRE(happens(io, [&] { return out.grants > 3 * waiters + 1000; }));
    over = true;
    BOOST_TEST_REQUIRE(happens(io, [&] { return ended == waiters; }));
  }
  // Those who counted have said so when they are gone.
  BOOST_TEST_REQUIRE(happens([&] {
    return b.db.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                       "AND pid <> pg_backend_pid() AND backend_type = 'client backend'") == 0;
  }));
  out.calls = b.db.number("SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname IN "
                          "('permit_steps', 'await_permits')");
  out.rows = b.db.number("SELECT sum(idx_tup_fetch) FROM pg_stat_user_indexes "
                         "WHERE relname = 'permits'");
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_line)

BOOST_AUTO_TEST_CASE(F68_a_grant_costs_the_same_whatever_the_number_of_waiters) {
  for (std::size_t const waiters : {10U, 1000U}) {
    auto const c = take_turns(waiters);
    auto const grants = static_cast<std::int64_t>(c.grants);
    // A place in line, a look, the permit and its release, of which several are one call.
    BOOST_TEST(c.calls <= 3 * grants,
               waiters << " waiters: " << c.calls << " calls for " << grants);
    BOOST_TEST(c.rows <= 40 * grants, waiters << " waiters: " << c.rows << " rows for " << grants);
  }
}

BOOST_AUTO_TEST_CASE(F68_a_release_tells_the_next_one_and_nobody_else) {
  line b;
  BOOST_TEST(b.in_line(b.store, "x", {}).granted);
  BOOST_TEST(b.in_line(b.store, "y", 1h).place == 1U);
  BOOST_TEST(b.in_line(b.other, "z", 1h).place == 2U);
  auto const next = b.turn(b.store, "y");
  auto const last = b.turn(b.other, "z");
  b.until_all_hear(2);
  BOOST_TEST(b.leave("x").freed);
  BOOST_TEST(happens(b.io, [&] { return next->has_value(); }));
  b.pause();
  BOOST_TEST(!last->has_value());
  BOOST_TEST(b.told() == 1);
  // Whose turn it was leaves: the last one is next.
  BOOST_TEST(b.leave("y").left_line);
  BOOST_TEST(happens(b.io, [&] { return last->has_value(); }));
  BOOST_TEST(b.told() == 1);
  // Nobody is told where nobody wants to hear.
  auto o = quick();
  o.listen = false;
  postgres_store const deaf{b.io.get_executor(), the_server().conninfo(b.database), o};
  BOOST_TEST(b.in_line(b.other, "z", 1h).granted);
  BOOST_TEST(b.in_line(deaf, "deaf", 1h).place == 1U);
  BOOST_TEST(b.leave("z").freed);
  BOOST_TEST(b.told() == 0);
}

BOOST_AUTO_TEST_CASE(F68_as_many_are_told_as_permits_are_free) {
  line b;
  auto const ask_for = [&](std::string_view holder, duration patience) {
    return b(command::acquire_permit{"key", holder, 3, 1h, patience}).value();
  };
  for (std::string const holder : {"1", "2", "3"}) BOOST_TEST(ask_for(holder, {}).granted);
  std::vector<line::ending> turns;
  for (std::string const holder : {"a", "b", "c", "d"}) {
    BOOST_TEST(ask_for(holder, 1h).place == turns.size() + 1);
    turns.push_back(b.turn(b.store, holder));
  }
  b.until_all_hear(1);
  // The second and the third go together, once the first is done.
  let_locks_take_long(b.db);
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN; SELECT 1 FROM weir.permit_lines FOR UPDATE");
  std::vector<line::ending> left;
  for (std::string const holder : {"1", "2", "3"}) {
    left.push_back(start(b.store, command::release_permit{"key", holder, 0}));
  }
  until_somebody_waits(b.io, b.database);
  holds.must("COMMIT");
  for (auto const& each : left) finish(b.io, *each);
  for (std::size_t i = 0; i != 3; ++i) finish(b.io, *turns[i]);
  b.pause();
  BOOST_TEST(!turns[3]->has_value());
  BOOST_TEST(b.told() == 3);
}

// Of whoever comes first not even its own limit has room.
BOOST_AUTO_TEST_CASE(F68_each_is_told_by_its_own_limit) {
  line b;
  auto const ask_for = [&](std::string_view holder, std::uint32_t limit, duration patience) {
    return b(command::acquire_permit{"key", holder, limit, 1h, patience}).value();
  };
  for (std::string const holder : {"1", "2", "3", "4"}) BOOST_TEST(ask_for(holder, 4, {}).granted);
  BOOST_TEST(ask_for("a", 1, 1h).place == 1U);
  BOOST_TEST(ask_for("b", 4, 1h).place == 2U);
  auto const first = b.turn(b.store, "a");
  auto const second = b.turn(b.store, "b");
  b.until_all_hear(1);
  BOOST_TEST(b.leave("1").freed);
  b.pause();
  BOOST_TEST(!second->has_value());  // if the one before had a permit, there would be four
  BOOST_TEST(b.leave("2").freed);
  finish(b.io, *second);
  BOOST_TEST(!first->has_value());
  BOOST_TEST(ask_for("b", 4, 1h).granted);
}

BOOST_AUTO_TEST_CASE(F68_all_that_die_in_line_cost_one_ticket) {
  line b;
  BOOST_TEST(b.in_line(b.store, "x", {}).granted);
  constexpr std::size_t dead = 250;
  for (std::size_t i = 0; i != dead; ++i) {
    BOOST_TEST(b.in_line(b.store, "dead" + std::to_string(i), 1h).place == i + 1);
  }
  BOOST_TEST(b.in_line(b.store, "next", 1h).place == dead + 1);
  BOOST_TEST(b.in_line(b.other, "last", 1h).place == dead + 2);
  auto const next = b.turn(b.store, "next");
  auto const last = b.turn(b.other, "last");
  b.until_all_hear(2);
  BOOST_TEST(b.leave("x").freed);
  b.pause();
  BOOST_TEST(!next->has_value());
  // Their tickets lapse. Whoever renews theirs finds out, and whose turn it is hears of it.
  b.db.must("UPDATE weir.permits SET until = 0 WHERE holder LIKE 'dead%'; "
            "UPDATE weir.permit_lines SET soonest = 0");
  BOOST_TEST(b.in_line(b.other, "last", 1h).place == 2U);
  BOOST_TEST(happens(b.io, [&] { return next->has_value(); }));
  b.pause();
  BOOST_TEST(!last->has_value());
}

// Others before them do, and they are told.
BOOST_AUTO_TEST_CASE(F68_those_far_behind_do_not_look_at_the_time) {
  line b;
  BOOST_TEST(b.in_line(b.store, "x", {}).granted);
  for (std::size_t i = 0; i != 20; ++i) {
    BOOST_TEST(b.in_line(b.store, "w" + std::to_string(i), 1h).place == i + 1);
  }
  BOOST_TEST(b.db.number("SELECT count(a.due_in) FROM weir.await_permits(ARRAY(SELECT 'key'::bytea "
                         "FROM generate_series(0, 19)), ARRAY(SELECT convert_to('w' || i, 'UTF8') "
                         "FROM generate_series(0, 19) i), NULL) a WHERE NOT a.due") == 9);
}

BOOST_AUTO_TEST_CASE(steps_of_one_key_travel_together_and_each_has_its_own_answer) {
  line b;
  connection holds{the_server().conninfo(b.database)};
  let_locks_take_long(b.db);
  b.connect_all();
  BOOST_TEST(b.in_line(b.store, "x", {}).granted);
  BOOST_TEST(b.in_line(b.store, "y", 1h).place == 1U);
  holds.must("BEGIN; SELECT 1 FROM weir.permit_lines FOR UPDATE");
  auto const first = start(b.store, command::acquire_permit{"key", "y", 1, 1h, 1h});
  until_somebody_waits(b.io, b.database);
  // All that comes meanwhile goes with the next call.
  std::vector<std::string> names;
  constexpr std::size_t many = 40;
  for (std::size_t i = 0; i != many; ++i) names.push_back("w" + std::to_string(i));
  std::vector<std::optional<permit_grant>> grants(many);
  for (std::size_t i = 0; i != many; ++i) {
    b.store.async_execute(command::acquire_permit{"key", names[i], 1, 1h, 1h},
                          [&grants, i](error_code ec, permit_grant const& g) {
                            BOOST_TEST(!ec);
                            grants[i] = g;
                          });
  }
  std::optional<lease_release> freed;
  std::optional<error_code> lost;
  b.store.async_execute(command::release_permit{"key", "x", 0},
                        [&](error_code, lease_release r) { freed = r; });
  b.store.async_execute(command::renew_permit{"key", "x", 1, 1h},
                        [&](error_code ec, lease_renewal) { lost = ec; });
  // Of another key, and nobody waits for this one.
  BOOST_TEST(b(command::acquire_permit{"another", "x", 1, 1h}).value().granted);
  b.pause();
  BOOST_TEST(!grants[0].has_value());
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                         "datname = current_database()") == 1);
  holds.must("COMMIT");
  BOOST_TEST(happens(b.io, [&] { return freed && lost && grants.back().has_value(); }));
  BOOST_TEST(!**first);
  BOOST_TEST(freed->freed);
  BOOST_TEST((*lost == errc::lease_lost));
  for (std::size_t i = 0; i != many; ++i) BOOST_TEST(grants[i]->place == i + 2);
  end_all_backends(b.db);  // so that they say what they counted
  BOOST_TEST(b.db.number("SELECT calls FROM pg_stat_user_functions "
                         "WHERE funcname = 'permit_steps'") == 5);
}

// What refuses one refuses each of them: they are not tried one after the other.
BOOST_AUTO_TEST_CASE(F50_whoever_wants_a_locked_key_is_refused_with_the_first) {
  line b;
  BOOST_TEST(b.in_line(b.store, "x", {}).granted);
  auto const rolled_back =
      b.db.number("SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()");
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN; SELECT 1 FROM weir.permit_lines FOR UPDATE");
  std::vector<std::string> names;
  constexpr std::size_t many = 50;
  for (std::size_t i = 0; i != many; ++i) names.push_back("w" + std::to_string(i));
  std::size_t refused = 0;
  for (auto const& name : names) {
    b.store.async_execute(command::acquire_permit{"key", name, 1, 1h, 1h},
                          [&](error_code ec, permit_grant const&) {
                            BOOST_TEST((ec == errc::store_unavailable));
                            ++refused;
                          });
  }
  BOOST_TEST(happens(b.io, [&] { return refused == many; }));
  holds.must("COMMIT");
  BOOST_TEST(b.in_line(b.store, "y", 1h).place == 1U);
  end_all_backends(b.db);
  BOOST_TEST(b.db.number("SELECT xact_rollback FROM pg_stat_database "
                         "WHERE datname = current_database()") <= rolled_back + 3);
}

BOOST_AUTO_TEST_SUITE_END()
