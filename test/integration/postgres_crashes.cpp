// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// An application's transaction and its jobs share their fate, wherever somebody dies; and what
// weir promises survives a server, backends and connections that come and go.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;
namespace asio = boost::asio;

/// Who dies, and what is to be done for the rest to go on.
struct death {
  char const* of;
  std::function<void(bed&, std::optional<connection>& dies)> happens;
};

/// Waits until this is so.
void until(std::function<bool()> const& so) { BOOST_TEST_REQUIRE(weir_test::happens(so)); }

void reconnect(bed& b) {
  // The server may still be recovering from what it was done.
  until([&] { return PQping(the_server().conninfo(b.database).c_str()) == PQPING_OK; });
  b.db = connection{the_server().conninfo(b.database)};
}

/// The server starts anew, with all of its backends: once it has noticed, which it has when it has
/// ended somebody else's.
void kill_backend(bed& b, int pid) {
  connection const witness{the_server().conninfo(b.database)};
  ::kill(pid, SIGKILL);
  until([&] {
    PQclear(PQexec(witness.get(), "SELECT 1"));
    return PQstatus(witness.get()) != CONNECTION_OK;
  });
  reconnect(b);
}

death const deaths[] = {
    {"the client", [](bed&, std::optional<connection>& dies) { dies.reset(); }},
    {"its backend",
     [](bed& b, std::optional<connection>& dies) {
       kill_backend(b, PQbackendPID(dies->get()));
       dies.reset();
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
  until([&] {
    if (answer.has_error() && lost(answer.error())) answer = b(c);
    return answer.has_value() || !lost(answer.error());
  });
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
      until([&] {
        return b.db.number("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                           "current_database() AND pid <> pg_backend_pid() AND state <> 'idle'") ==
               0;
      });
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
  std::set<int> unique;        ///< those of jobs with unique keys, that were no duplicates
  std::map<int, int> handled;  ///< how often each job was completed, as far as it was said
  std::map<std::pair<std::string, std::uint64_t>, std::string> given;  ///< who got which fence
  std::uint64_t tokens = 0;                                            ///< that were granted
  std::uint64_t none_left = 0;  ///< times that there was no token
  int broken = 0;               ///< promises
  int untyped = 0;  ///< errors that say something else than that the store was not to be had
  int enqueuing = 0;

  /// A fence of `what` is given to nobody else (R5).
  void give(std::string const& what, std::uint64_t fence, std::string const& to) {
    auto const at = given.try_emplace({what, fence}, to).first;
    if (at->second != to) ++broken;
  }
  template <class T>
  [[nodiscard]] bool good(result<T> const& answer) {
    if (answer.has_error() && !lost(answer.error())) ++untyped;
    return answer.has_value();
  }
};

// Far less than is asked for: otherwise nobody would see whether they are kept.
constexpr std::uint64_t rate = 1;
constexpr std::uint64_t burst = 5;

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

/// Asks for the same again until there is an answer: that adds nothing, for a record of what has
/// ended is kept.
asio::awaitable<enqueue_outcome> enqueue(postgres_store const& s, ledger& l, std::string_view queue,
                                         new_job j) {
  j.retention = 1h;
  std::vector<new_job> const jobs{j};
  command::enqueue_jobs const c{queue, jobs};
  for (;;) {
    auto asking = ask_from(s, c);
    auto const answer = co_await std::move(asking);
    if (l.good(answer)) co_return answer->front().outcome;
    auto waiting = pause(2ms);
    co_await std::move(waiting);
  }
}

asio::awaitable<void> produce(postgres_store const& s, ledger& l, int from, int to) {
  ++l.enqueuing;
  for (int n = from; n < to; ++n) {
    auto const number = static_cast<std::uint8_t>(n);
    auto plain = enqueue(s, l, "q", job_of(number));
    co_await std::move(plain);
    l.acknowledged.insert(n);
    if (n % 4 != 0) continue;
    auto const key = "key" + std::to_string(n % 3);
    auto unique = enqueue(s, l, "u", job_of(number, key));
    auto const outcome = co_await std::move(unique);
    if (outcome == enqueue_outcome::enqueued) l.unique.insert(n);
  }
  --l.enqueuing;
}

asio::awaitable<void> handle(postgres_store const& s, ledger& l, std::string_view queue,
                             std::string const& holder, std::uint64_t sequence) {
  command::dequeue_jobs const take{queue, holder, sequence, 3, 2s};
  auto taking = ask_from(s, take);
  auto const taken = co_await std::move(taking);
  if (!l.good(taken)) co_return;
  for (auto const& j : taken->jobs) {
    l.give(std::string{queue}, j.fence, holder);
    std::vector<finished_job> const done{{j.id, j.fence, {}}};
    command::complete_jobs const end{queue, done};
    auto ending = ask_from(s, end);
    auto const ended = co_await std::move(ending);
    if (!l.good(ended) || ended->front() != complete_outcome::completed) continue;
    if (queue == "q") ++l.handled[*(j.id.end() - 1)];
  }
}

/// Is all of it completed? An answer that was lost may have been that of a completion.
asio::awaitable<bool> all_done(postgres_store const& s, ledger& l) {
  for (std::string_view const queue : {"q", "u"}) {
    command::read_queue_stats const count{queue};
    auto counting = ask_from(s, count);
    auto const stats = co_await std::move(counting);
    auto const all = queue == "q" ? l.acknowledged.size() : l.unique.size();
    if (!l.good(stats) || l.enqueuing > 0 || stats->completed != all) co_return false;
  }
  co_return true;
}

asio::awaitable<void> consume(postgres_store const& s, ledger& l, std::string holder) {
  quota const quotas[] = {quota::per_second(rate).burst(burst)};
  for (std::uint64_t sequence = 1;; ++sequence) {
    command::acquire_permit const enter{"permits", holder, 2, 400ms};
    auto entering = ask_from(s, enter);
    auto const permit = co_await std::move(entering);
    if (l.good(permit) && permit->granted) {
      l.give("permit", permit->fence, holder);
      for (std::string_view const queue : {"q", "u"}) {
        auto handling = handle(s, l, queue, holder, sequence);
        co_await std::move(handling);
      }
      command::release_permit const leave{"permits", holder, permit->fence};
      auto leaving = ask_from(s, leave);
      co_await std::move(leaving);
    }
    command::take const token{"bucket", quotas};
    auto taking = ask_from(s, token);
    auto const taken = co_await std::move(taking);
    if (l.good(taken)) ++(taken->allowed ? l.tokens : l.none_left);
    command::acquire_lock const lock{"lock", holder, 100ms};
    auto locking = ask_from(s, lock);
    auto const locked = co_await std::move(locking);
    if (l.good(locked) && locked->granted) {
      l.give("lock", locked->fence, holder);
      command::release_lock const unlock{"lock", holder, locked->fence};
      auto unlocking = ask_from(s, unlock);
      co_await std::move(unlocking);
    }
    auto asking = all_done(s, l);
    if (co_await std::move(asking)) break;
    auto waiting = pause(5ms);
    co_await std::move(waiting);
  }
}

}  // namespace

// R1 to R6
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
  auto const started = std::chrono::steady_clock::now();
  spawn(produce(one, l, 1, 100));
  spawn(produce(two, l, 100, 200));
  for (std::string const holder : {"a", "b", "c"}) spawn(consume(one, l, holder));
  for (std::string const holder : {"d", "e", "f"}) spawn(consume(two, l, holder));

  std::int64_t most = 0;
  std::int64_t twice = 0;
  auto const give_up = started + 240s;
  for (int round = 1; running > 0 && std::chrono::steady_clock::now() < give_up; ++round) {
    b.io.restart();
    b.io.run_for(100ms);
    if (PQstatus(b.db.get()) != CONNECTION_OK) reconnect(b);
    most = std::max(most, b.db.number("SELECT count(*) FROM weir.permits WHERE NOT ticket AND "
                                      "until > weir.clock()"));
    twice += b.db.number("SELECT count(*) FROM (SELECT 1 FROM weir.jobs WHERE queue = 'u' AND "
                         "state = 0 GROUP BY unique_key HAVING count(*) > 1) k");
    // Not for ever: on a machine that is slow, nothing may be done between two of these.
    if (round % 3 == 0 && round < 100) end_all_backends(b.db);
    if (round == 8) {
      the_server().kill(SIGKILL);
      the_server().start();
      reconnect(b);
    }
    if (round == 16) kill_backend(b, PQbackendPID(b.db.get()));
    if (round == 20) proxy.chaos({});
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - started;
  proxy.async_close();
  BOOST_TEST(running == 0);
  BOOST_TEST(l.untyped == 0);
  BOOST_TEST(l.broken == 0);
  BOOST_TEST(most <= 2);
  BOOST_TEST(twice == 0);
  BOOST_TEST(static_cast<double>(l.tokens) <= burst + rate * took.count());
  BOOST_TEST(l.none_left > 0U);
  BOOST_TEST(l.acknowledged.size() == 199U);
  for (auto const& [job, times] : l.handled) BOOST_TEST(times == 1, job);
  for (std::string const queue : {"q", "u"}) {
    auto const stats = in_the_end(b, command::read_queue_stats{queue});
    BOOST_TEST(stats.enqueued == (queue == "q" ? l.acknowledged : l.unique).size());
    BOOST_TEST(stats.completed == stats.enqueued);
    BOOST_TEST(stats.pending == 0U);
    BOOST_TEST(stats.dead == 0U);
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs WHERE state = 0") == 0);
  BOOST_TEST(b.db.number(taken_keys) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
