// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Who waits for a hint is told by the server, and finds out alone where that fails (F38, F43).

#include "postgres_bed.hpp"
#include "weir/testing/fault_proxy.hpp"
#include "weir/worker.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;
using weir::testing::fault_proxy;

postgres_options waits(duration poll) {
  auto o = quick();
  o.poll_interval = poll;
  return o;
}

struct waiting_bed : bed {
  explicit waiting_bed(duration poll) : bed{waits(poll)} {}

  using ending = std::shared_ptr<std::optional<error_code>>;

  template <class C>
  ending wait(postgres_store const& s, C const& c) {
    auto out = std::make_shared<std::optional<error_code>>();
    s.async_execute(c, [out](error_code ec, hint) { *out = ec; });
    return out;
  }

  /// Runs until this is so.
  template <class Condition>
  void until(Condition so) {
    auto const give_up = std::chrono::steady_clock::now() + 60s;
    bool was = so();  // what is said of a connection that ends may be so once, and then no more
    while (!was && std::chrono::steady_clock::now() < give_up) {
      io.restart();
      io.run_one_for(20ms);
      io.poll();  // all of it: looking may take longer than what there is to do
      was = so();
    }
    BOOST_TEST_REQUIRE(was);
  }
  void ends_well(ending const& e) {
    until([&] { return e->has_value(); });
    BOOST_TEST(!**e, (*e)->message());
  }

  /// Until a store listens, and has said what for: who has news from then on tells it.
  void until_listened_to() {
    until([&] {
      return listens() && db.number("SELECT count(*) FROM weir.hints WHERE topic LIKE 'j%'") >= 1;
    });
  }
  /// Until a store listens, and has looked whether it is somebody's turn.
  void until_in_line() {
    until([&] {
      return listens() && db.number("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' "
                                    "AND query LIKE '%await_permits%' AND pid <> "
                                    "pg_backend_pid() AND datname = current_database()") >= 1;
    });
    io.restart();
    io.run_for(50ms);
  }
  bool listens() {
    return db.number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND "
                     "state = 'idle' AND datname = current_database()") >= 1;
  }

  void enqueue(std::uint8_t n) {
    std::vector<new_job> const jobs{job_of(n)};
    BOOST_TEST(ask(io, other, command::enqueue_jobs{"q", jobs}).has_value());
  }

  /// Another process's, as far as the first can see.
  postgres_store other{io.get_executor(), the_server().conninfo(database), quick()};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_waiters)

BOOST_AUTO_TEST_CASE(F84_an_idle_worker_asks_for_all_shards_in_one_round_trip_a_second) {
  for (std::uint32_t const shards : {1U, 8U}) {
    auto o = quick();
    o.poll_interval = postgres_options{}.poll_interval;
    o.shards = shards;
    bed there{o};
    fault_proxy const proxy{there.io.get_executor(),
                            {boost::asio::ip::address_v4::loopback(), the_server().port()}};
    // Messages within a tenth of a second of each other are one question.
    auto last = std::make_shared<steady_time>();
    auto questions = std::make_shared<int>(0);
    proxy.split_messages([=](weir::testing::traffic way) -> weir::testing::message_splitter {
      return [=](std::string_view bytes) {
        if (way == weir::testing::traffic::to_server) {
          auto const now = system_clock{}.steady_now();
          if (now - std::exchange(*last, now) > 100ms) ++*questions;
        }
        return bytes.size();
      };
    });
    postgres_store const store{
        there.io.get_executor(),
        server::conninfo_to(proxy.endpoint().port(), there.database) + " sslmode=disable", o};
    worker w{store, worker_options{}};
    bool over = false;
    w.async_run([&](error_code) { over = true; });
    there.io.restart();
    there.io.run_for(2500ms);
    auto const begun = std::chrono::steady_clock::now();
    auto const before = *questions;
    there.io.restart();
    there.io.run_for(6s);
    auto const most = (std::chrono::steady_clock::now() - begun) / 1s + 1;
    BOOST_TEST(*questions - before <= most, shards << " shards: " << *questions - before);
    BOOST_TEST(*questions - before >= 4);
    w.stop();
    while (!over) there.io.run_one_for(20ms);
    proxy.async_close();
  }
}

BOOST_AUTO_TEST_CASE(who_waits_is_told_by_the_server_alone) {
  waiting_bed b{1h};
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  BOOST_TEST(!jobs->has_value());
  b.enqueue(1);
  b.ends_well(jobs);
  BOOST_TEST(b(command::dequeue_jobs{"q", "h", 1, 10, 1min})->jobs.size() == 1U);

  BOOST_TEST(b(command::acquire_permit{"k", "x", 1, 1h})->granted);
  BOOST_TEST(b(command::acquire_permit{"k", "y", 1, 1h, 1h})->place == 1U);
  auto const permit = b.wait(b.store, command::await_permit{"k", "y"});
  b.until_in_line();
  BOOST_TEST(!permit->has_value());
  BOOST_TEST(ask(b.io, b.other, command::release_permit{"k", "x", 0})->freed);
  b.ends_well(permit);
  BOOST_TEST(b(command::acquire_permit{"k", "y", 1, 1h, 1h})->granted);

  // What vests while it waits needs no news.
  auto later = job_of(2);
  later.delay = 300ms;
  std::vector<new_job> const some{later};
  BOOST_TEST(ask(b.io, b.other, command::enqueue_jobs{"q", some}).has_value());
  auto const vested = b.wait(b.store, command::await_jobs{});
  b.ends_well(vested);
}

BOOST_AUTO_TEST_CASE(an_applications_commit_tells_who_waits) {
  waiting_bed b{1h};
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  postgres_transaction tx{own.get()};
  std::vector<new_job> const some{job_of(1)};
  BOOST_TEST(tx.execute(command::enqueue_jobs{"q", some}).has_value());
  b.io.restart();
  b.io.run_for(50ms);
  BOOST_TEST(!jobs->has_value());
  own.must("COMMIT");
  b.ends_well(jobs);
}

// F38: a step that began before anybody waited tells nobody, and cannot be seen yet.
BOOST_AUTO_TEST_CASE(news_under_way_when_somebody_begins_to_wait_is_not_missed) {
  waiting_bed b{1h};
  // The store listens already: when it begins to, it looks at everything once more.
  std::vector<waiting_bed::ending> turns;
  for (std::string const key : {"first", "second"}) {
    BOOST_TEST(b(command::acquire_permit{key, "x", 1, 1h}).value().granted);
    BOOST_TEST(b(command::acquire_permit{key, "y", 1, 1h, 1h}).value().place == 1U);
    turns.push_back(b.wait(b.store, command::await_permit{key, "y"}));
    b.until_in_line();
  }
  BOOST_TEST(ask(b.io, b.other, command::release_permit{"first", "x", 0}).value().freed);
  b.ends_well(turns[0]);

  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN; SELECT weir.touch('q', 0, weir.clock(), weir.clock(), true)");
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  BOOST_TEST(!jobs->has_value());
  own.must("COMMIT");
  b.ends_well(jobs);
  BOOST_TEST(!turns[1]->has_value());
}

// F38: an application's transaction did not see that anybody waits, and is committed later.
BOOST_AUTO_TEST_CASE(news_of_an_applications_open_transaction_are_not_missed) {
  waiting_bed b{1h};
  connection own{the_server().conninfo(b.database)};
  for (std::string const level : {"READ COMMITTED", "REPEATABLE READ"}) {
    BOOST_TEST_CONTEXT(level) {
      bool const early = level == "READ COMMITTED";
      auto const touch = "SELECT weir.touch('q', 0, weir.clock(), weir.clock(), false)";
      own.must(("BEGIN ISOLATION LEVEL " + level + "; SELECT 1").c_str());
      if (early) own.must(touch);
      auto const jobs = b.wait(b.store, command::await_jobs{});
      b.until_listened_to();
      BOOST_TEST(!jobs->has_value());
      if (!early) own.must(touch);
      own.must("COMMIT");
      b.ends_well(jobs);
      own.must("TRUNCATE weir.pointers, weir.hints");
    }
  }
}

// F43: an application's transactions notify no longer than somebody says that they wait.
// Neither a transaction of an application's nor a step that stands still holds up who begins to
// wait.
BOOST_AUTO_TEST_CASE(news_of_an_open_transaction_hold_up_nobody_who_waits) {
  waiting_bed b{1h};
  BOOST_TEST(b(command::pause_queue{"q"}).has_value());
  b.enqueue(1);
  auto const asks = [&] {
    return b.db.must("SELECT due_in FROM weir.await_jobs(0, 3600000000000, NULL)");
  };
  BOOST_TEST(asks() == "");
  connection application{the_server().conninfo(b.database)};
  application.must("BEGIN");
  postgres_transaction tx{application.get()};
  BOOST_TEST(tx.execute(command::resume_queue{"q"}).has_value());
  BOOST_TEST(asks() == "0");
  auto const jobs = b.wait(b.other, command::await_jobs{});
  b.until([&] { return b.listens(); });
  application.must("COMMIT");
  b.ends_well(jobs);

  BOOST_TEST(b(command::pause_queue{"q"}).has_value());
  b.db.must("DELETE FROM weir.hints");
  BOOST_TEST(asks() == "");
  application.must("BEGIN; SELECT weir.tell('j0', true)");
  BOOST_TEST(asks() == "0");
  application.must("ROLLBACK");
  BOOST_TEST(asks() == "");
}

BOOST_AUTO_TEST_CASE(who_waits_says_so_again_and_is_forgotten_otherwise) {
  waiting_bed b{10ms};
  connection ear{the_server().conninfo(b.database)};
  ear.must("LISTEN weir");
  auto const news_of = [&](std::string const& until) {
    ear.must(("INSERT INTO weir.hints VALUES ('j0', weir.clock() + " + until +
              ") ON CONFLICT (topic) DO UPDATE SET until = excluded.until;"
              "SELECT weir.touch('q', 0, weir.clock(), weir.clock(), false)")
                 .c_str());
    int n = 0;
    while (auto* const news = PQnotifies(ear.get())) {
      PQfreemem(news);
      ++n;
    }
    return n;
  };
  BOOST_TEST(news_of("1000000000000") == 1);
  BOOST_TEST(news_of("-1") == 0);
  ear.must("TRUNCATE weir.pointers, weir.hints");
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  auto const until = [&] { return b.db.number("SELECT max(until) FROM weir.hints"); };
  auto const first = until();
  b.until([&] { return until() > first; });
  BOOST_TEST(!jobs->has_value());
}

// F38: who was about to tell it had taken it on himself.
BOOST_AUTO_TEST_CASE(news_are_told_though_another_who_had_some_is_undone) {
  waiting_bed b{1h};
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN; SELECT weir.tell((SELECT topic FROM weir.hints WHERE topic LIKE 'j%'), true)");
  b.enqueue(1);
  own.must("ROLLBACK");
  b.ends_well(jobs);
}

// F43
BOOST_AUTO_TEST_CASE(it_is_said_once_for_each_wait_and_not_for_each_job) {
  waiting_bed b{1h};
  connection ear{the_server().conninfo(b.database)};
  ear.must("LISTEN weir");
  auto const heard = [&] {
    ear.must("SELECT 1");
    int n = 0;
    while (auto* const news = PQnotifies(ear.get())) {
      PQfreemem(news);
      ++n;
    }
    return n;
  };
  for (std::uint8_t i = 1; i <= 20; ++i) b.enqueue(i);
  BOOST_TEST(heard() == 0);  // nobody waits
  BOOST_TEST(b(command::dequeue_jobs{"q", "h", 1, 100, 1min}).value().jobs.size() == 20U);
  auto const jobs = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  for (std::uint8_t i = 21; i <= 60; ++i) b.enqueue(i);
  b.ends_well(jobs);
  int n = 0;
  b.until([&] { return (n += heard()) != 0; });
  BOOST_TEST(n == 1);
  BOOST_TEST(heard() == 0);
}

BOOST_AUTO_TEST_CASE(who_waits_finds_out_alone_where_nobody_can_tell) {
  waiting_bed b{10ms};
  fault_proxy const proxy{b.io.get_executor(),
                          {boost::asio::ip::address_v4::loopback(), the_server().port()}};
  auto const ear = server::conninfo_to(proxy.endpoint().port(), b.database);
  auto o = waits(10ms);
  o.listen_conninfo = ear;
  postgres_store const deaf{b.io.get_executor(), the_server().conninfo(b.database), o};
  o.listen = false;
  postgres_store const silent{b.io.get_executor(), the_server().conninfo(b.database), o};
  // Refused from the beginning; then cut while it listens, and refused.
  for (bool const listens : {false, true}) {
    proxy.async_refuse(!listens);
    auto const jobs = b.wait(deaf, command::await_jobs{});
    auto const polls = b.wait(silent, command::await_jobs{});
    if (listens) b.until_listened_to();
    proxy.async_refuse(true);
    proxy.async_cut_all(weir::testing::proxy_ending::reset);
    b.io.restart();
    b.io.run_for(100ms);
    BOOST_TEST(!jobs->has_value());
    b.enqueue(listens ? 1 : 2);
    b.ends_well(jobs);
    b.ends_well(polls);
    BOOST_TEST(b(command::dequeue_jobs{"q", "h", listens ? 1U : 2U, 10, 1min})->jobs.size() == 1U);
  }
  proxy.async_close();
}

// F38: a connection that says nothing any more, without being closed, is noticed and made anew.
BOOST_AUTO_TEST_CASE(a_listener_that_hears_nothing_any_more_is_replaced) {
  waiting_bed b{1h};
  fault_proxy const proxy{b.io.get_executor(),
                          {boost::asio::ip::address_v4::loopback(), the_server().port()}};
  auto const ear = server::conninfo_to(proxy.endpoint().port(), b.database) + " sslmode=disable";
  auto o = waits(1h);
  o.listen_conninfo = ear;
  o.command_timeout = 500ms;
  postgres_store const store{b.io.get_executor(), the_server().conninfo(b.database), o};
  // From the answer to LISTEN, from the first sign of life, and not at all.
  for (std::uint64_t const message : {1U, 2U}) {
    proxy.script({{.fault = weir::testing::proxy_fault::black_hole,
                   .direction = weir::testing::traffic::to_client,
                   .message = message}});
  }
  // A server that is slower than that to answer is waited for once more.
  auto jobs = b.wait(store, command::await_jobs{});
  auto const goes_on = [&] {
    if (jobs->has_value() && **jobs && lost(**jobs)) jobs = b.wait(store, command::await_jobs{});
  };
  b.until([&] {
    goes_on();
    return proxy.counts().accepted >= 2;
  });
  BOOST_TEST(!jobs->has_value());
  b.enqueue(1);
  b.until([&] {
    goes_on();
    return jobs->has_value();
  });
  BOOST_TEST(!**jobs, (*jobs)->message());
  proxy.async_close();
}

// R7
BOOST_AUTO_TEST_CASE(a_wait_that_is_cancelled_or_closed_leaves_nothing_running) {
  waiting_bed b{1h};
  boost::asio::cancellation_signal signal;
  std::optional<error_code> ended;
  b.store.async_execute(
      command::await_jobs{},
      boost::asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, hint) { ended = ec; }));
  b.until_listened_to();
  signal.emit(boost::asio::cancellation_type::terminal);
  b.io.restart();
  b.io.run();  // nothing keeps it
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == boost::asio::error::operation_aborted));

  auto const again = b.wait(b.store, command::await_jobs{});
  b.until_listened_to();
  b.store.close();
  b.io.restart();
  b.io.run();
  BOOST_TEST_REQUIRE(again->has_value());
  BOOST_TEST((**again == errc::closed));

  boost::asio::io_context brief;  // and it dies with its context
  postgres_store const dies{brief.get_executor(), the_server().conninfo(b.database), waits(1h)};
  bool called = false;
  dies.async_execute(command::await_jobs{}, [&](error_code, hint) { called = true; });
  dies.async_execute(command::await_permit{"k", "h"}, [&](error_code, hint) {});
  brief.run_for(200ms);
  BOOST_TEST(!called);
}

// R7
BOOST_AUTO_TEST_CASE(a_wait_ends_with_the_last_handle_of_its_store) {
  waiting_bed b{1h};
  BOOST_TEST(b(command::acquire_permit{"k", "x", 1, 1h}).has_value());
  BOOST_TEST(b(command::acquire_permit{"k", "h", 1, 1h, 1h}).has_value());
  for (bool const listens : {true, false}) {
    auto o = waits(1h);
    o.listen = listens;
    std::optional<postgres_store> one{std::in_place, b.io.get_executor(),
                                      the_server().conninfo(b.database), o};
    auto const jobs = b.wait(*one, command::await_jobs{});
    auto const turn = b.wait(*one, command::await_permit{"k", "h"});
    if (listens) b.until_listened_to();
    auto copy = one;
    one.reset();
    b.io.restart();
    b.io.run_for(100ms);
    BOOST_TEST(!jobs->has_value());
    BOOST_TEST(!turn->has_value());
    copy.reset();
    b.until([&] { return jobs->has_value() && turn->has_value(); });
    BOOST_TEST((**jobs == boost::asio::error::operation_aborted));
    BOOST_TEST((**turn == boost::asio::error::operation_aborted));
    b.io.restart();
    b.io.run();  // nothing keeps it
  }
}

BOOST_AUTO_TEST_SUITE_END()
