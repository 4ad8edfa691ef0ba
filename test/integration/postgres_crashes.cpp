// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// An application's transaction and its jobs share their fate, wherever somebody dies; and what
// weir promises survives a server, backends and connections that come and go.

#include "postgres_bed.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace postgres_test;
namespace asio = boost::asio;

/// Who dies, and what is to be done for the rest to go on.
struct death {
  char const* of;
  std::function<void(bed&, std::optional<connection>& dies)> happens;
};

void reconnect(bed& b) {
  // The server may still be recovering from what it was done.
  for (int i = 0; i < 1500; ++i) {
    if (PQping(the_server().conninfo(b.database).c_str()) == PQPING_OK) break;
    std::this_thread::sleep_for(20ms);
  }
  b.db = connection{the_server().conninfo(b.database)};
}

death const deaths[] = {
    {"the client", [](bed&, std::optional<connection>& dies) { dies.reset(); }},
    {"its backend",
     [](bed& b, std::optional<connection>& dies) {
       auto const pid = PQbackendPID(dies->get());
       ::kill(pid, SIGKILL);  // the server starts anew, with all of its backends
       dies.reset();
       for (int i = 0; i < 500 && PQstatus(b.db.get()) == CONNECTION_OK; ++i) {
         PQclear(PQexec(b.db.get(), "SELECT 1"));
         std::this_thread::sleep_for(10ms);
       }
       reconnect(b);
     }},
    {"the server",
     [](bed& b, std::optional<connection>& dies) {
       the_server().kill(SIGKILL);
       dies.reset();
       the_server().start();
       reconnect(b);
     }},
};

/// A store's answer once it is well again.
template <class C>
auto in_the_end(bed& b, C const& c) {
  auto answer = b(c);
  for (int i = 0; i < 500 && answer.has_error() && lost(answer.error()); ++i) {
    std::this_thread::sleep_for(10ms);
    answer = b(c);
  }
  BOOST_TEST_REQUIRE(answer.has_value(), answer.error().message());
  return *answer;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_crashes)

// Between any two steps, and while it is being committed.
BOOST_AUTO_TEST_CASE(an_application_and_its_jobs_share_their_fate_wherever_somebody_dies) {
  std::vector<new_job> const first{job_of(1, "key"), job_of(2)};
  std::vector<new_job> const second{job_of(3, "another key")};
  constexpr int steps = 6;
  for (auto const& d : deaths) {
    for (int done = 1; done <= steps; ++done) {
      bed b;
      b.db.must("CREATE TABLE mine (x int)");
      std::optional<connection> dies{std::in_place, the_server().conninfo(b.database)};
      std::function<void()> const step[steps] = {
          [&] { dies->must("BEGIN"); },
          [&] {
            BOOST_TEST(postgres_transaction{dies->get()}
                           .execute(command::enqueue_jobs{"q", first})
                           .has_value());
          },
          [&] { dies->must("INSERT INTO mine VALUES (1)"); },
          [&] {
            BOOST_TEST(postgres_transaction{dies->get()}
                           .execute(command::enqueue_jobs{"q2", second})
                           .has_value());
          },
          [&] { BOOST_TEST(PQsendQuery(dies->get(), "COMMIT") == 1); },
          [&] {
            while (auto* const r = PQgetResult(dies->get())) PQclear(r);
            BOOST_TEST((PQtransactionStatus(dies->get()) == PQTRANS_IDLE));
          },
      };
      for (int i = 0; i < done; ++i) step[i]();
      d.happens(b, dies);

      std::string const where = std::string{d.of} + " after step " + std::to_string(done);
      // A backend whose client is gone may still be at work.
      for (int i = 0; i < 500; ++i) {
        if (b.db.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND pid <> pg_backend_pid() AND state <> 'idle'") == 0) {
          break;
        }
        std::this_thread::sleep_for(10ms);
      }
      auto const mine = b.db.number("SELECT count(*) FROM mine");
      if (done < 5) BOOST_TEST(mine == 0, where);
      if (done == 6) BOOST_TEST(mine == 1, where);
      BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 3 * mine, where);
      BOOST_TEST(b.db.number("SELECT count(*) FROM weir.keys") == 2 * mine, where);
      BOOST_TEST(b.db.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
                             "database = (SELECT oid FROM pg_database WHERE datname = "
                             "current_database())") == 0,
                 where);
      std::vector<new_job> const same{job_of(9, "key")};
      auto const outcome = in_the_end(b, command::enqueue_jobs{"q", same}).front();
      BOOST_TEST(
          (outcome.outcome == (mine == 1 ? enqueue_outcome::duplicate : enqueue_outcome::enqueued)),
          where);
      auto const stats = in_the_end(b, command::read_queue_stats{"q"});
      BOOST_TEST(stats.enqueued == (mine == 1 ? 2U : 1U), where);
      BOOST_TEST(stats.pending == stats.enqueued, where);
      BOOST_TEST(in_the_end(b, command::scan_visible_queues{}).queues.size() ==
                     (mine == 1 ? 2U : 1U),
                 where);
    }
  }
}

namespace {

/// What is known from outside of a store whose connections fail all the time.
struct ledger {
  std::set<int> acknowledged;  ///< enqueues
  std::map<int, int> handled;  ///< how often each job was completed, as far as it was said
  std::map<std::string, std::uint64_t> fences;
  int untyped = 0;
  int enqueuing = 0;
};

template <class C>
asio::awaitable<result<typename C::result>> ask_from(postgres_store const& s, C const& c) {
  error_code ec;
  auto token = asio::redirect_error(asio::use_awaitable, ec);
  auto answer = co_await s.async_execute(c, token);
  if (ec) co_return result<typename C::result>{ec};
  co_return result<typename C::result>{std::move(answer)};
}

asio::awaitable<void> pause(duration d) {
  asio::steady_timer t{co_await asio::this_coro::executor, d};
  co_await t.async_wait(asio::use_awaitable);
}

asio::awaitable<void> produce(postgres_store const& s, ledger& l, int from, int to) {
  ++l.enqueuing;
  for (int n = from; n < to; ++n) {
    std::vector<new_job> const jobs{job_of(static_cast<std::uint8_t>(n))};
    command::enqueue_jobs const c{"q", jobs};
    for (bool done = false; !done;) {  // the same again: that adds nothing
      auto asking = ask_from(s, c);
      auto const answer = co_await std::move(asking);
      done = answer.has_value();
      if (!done && !lost(answer.error())) ++l.untyped;
      auto waiting = pause(2ms);
      if (!done) co_await std::move(waiting);
    }
    l.acknowledged.insert(n);
  }
  --l.enqueuing;
}

asio::awaitable<void> consume(postgres_store const& s, ledger& l, std::string holder) {
  std::uint64_t sequence = 0;
  while (l.enqueuing > 0 || l.handled.size() < l.acknowledged.size()) {
    command::acquire_permit const enter{"permits", holder, 2, 400ms};
    auto entering = ask_from(s, enter);
    auto const permit = co_await std::move(entering);
    if (permit.has_error() && !lost(permit.error())) ++l.untyped;
    if (permit.has_value() && permit->granted) {
      if (permit->fence < l.fences[holder]) ++l.untyped;
      l.fences[holder] = permit->fence;
      command::dequeue_jobs const take{"q", holder, ++sequence, 3, 2s};
      auto taking = ask_from(s, take);
      auto const taken = co_await std::move(taking);
      if (taken.has_error() && !lost(taken.error())) ++l.untyped;
      for (std::size_t i = 0; taken.has_value() && i < taken->jobs.size(); ++i) {
        auto const& j = taken->jobs[i];
        std::vector<finished_job> const done{{j.id, j.fence, {}}};
        command::complete_jobs const end{"q", done};
        auto ending = ask_from(s, end);
        auto const ended = co_await std::move(ending);
        if (ended.has_error() && !lost(ended.error())) ++l.untyped;
        if (ended.has_value() && ended->front() == complete_outcome::completed) {
          ++l.handled[*(j.id.end() - 1)];
        }
      }
      command::release_permit const leave{"permits", holder, permit->fence};
      auto leaving = ask_from(s, leave);
      co_await std::move(leaving);
    }
    command::find_job const look{"q", id(0)};
    auto looking = ask_from(s, look);
    co_await std::move(looking);
    command::read_queue_stats const count{"q"};
    auto counting = ask_from(s, count);
    auto const stats = co_await std::move(counting);
    // An answer that was lost may have been that of a completion.
    if (stats.has_value() && l.enqueuing == 0 && stats->completed == l.acknowledged.size()) break;
    auto waiting = pause(5ms);
    co_await std::move(waiting);
  }
}

}  // namespace

// R1, R4, R5, R6
BOOST_AUTO_TEST_CASE(promises_hold_while_connections_and_servers_come_and_go) {
  bed b;
  weir::testing::fault_proxy const proxy{b.io.get_executor(),
                                         {asio::ip::address_v4::loopback(), the_server().port()}};
  proxy.chaos({.seed = 7, .cut_before = 1, .cut_in = 1, .cut_after = 1, .delay = 2});
  auto o = quick();
  o.command_timeout = 2s;
  auto const place = server::conninfo_to(proxy.endpoint().port(), b.database) + " sslmode=disable";
  postgres_store const one{b.io.get_executor(), place, o};
  postgres_store const two{b.io.get_executor(), place, o};
  ledger l;
  int running = 0;
  auto const spawn = [&](asio::awaitable<void> what) {
    ++running;
    asio::co_spawn(b.io, std::move(what), [&](std::exception_ptr) { --running; });
  };
  spawn(produce(one, l, 1, 100));
  spawn(produce(two, l, 100, 200));
  for (std::string const holder : {"a", "b", "c"}) spawn(consume(one, l, holder));
  for (std::string const holder : {"d", "e", "f"}) spawn(consume(two, l, holder));

  int killed = 0;
  std::int64_t most = 0;
  auto const give_up = std::chrono::steady_clock::now() + 120s;
  for (int round = 1; running > 0 && std::chrono::steady_clock::now() < give_up; ++round) {
    b.io.restart();
    b.io.run_for(100ms);
    if (PQstatus(b.db.get()) != CONNECTION_OK) reconnect(b);
    most = std::max(most, b.db.number("SELECT count(*) FROM weir.permits WHERE NOT ticket AND "
                                      "until > weir.clock()"));
    if (round % 3 == 0) end_all_backends(b.db);
    if (round % 8 == 0 && killed < 2) {
      ++killed;
      the_server().kill(SIGKILL);
      the_server().start();
      reconnect(b);
    }
    if (round == 20) proxy.chaos({});
  }
  proxy.async_close();
  BOOST_TEST(running == 0);
  BOOST_TEST(l.untyped == 0);
  BOOST_TEST(most <= 2);
  BOOST_TEST(l.acknowledged.size() == 199U);
  for (auto const& [job, times] : l.handled) BOOST_TEST(times == 1, job);
  auto const stats = in_the_end(b, command::read_queue_stats{"q"});
  BOOST_TEST(stats.enqueued == 199U);
  BOOST_TEST(stats.completed == 199U);
  BOOST_TEST(stats.pending == 0U);
  BOOST_TEST(stats.dead == 0U);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
}

BOOST_AUTO_TEST_SUITE_END()
