// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A process that writes is killed (SIGKILL) at any moment, over and over; what it was told is done
// is in the file, and the file keeps R1-R5.

#include "sqlite_bed.hpp"
#include "sqlite_helper.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

namespace {

using namespace sqlite_test;
using boost::asio::awaitable;

constexpr std::uint32_t permits = 4;
constexpr std::uint64_t most_jobs = 200'000;

enum fate : std::uint8_t { unknown, enqueued_, completed_, dead_, cancelled_ };

/// What was acknowledged, as the process that is killed notes it.
struct witness {
  std::atomic<std::uint64_t> ready;
  std::atomic<std::uint64_t> next;   // number of the next job
  std::atomic<std::uint64_t> fence;  // the latest one seen
  std::atomic<std::uint64_t> fences_back;
  std::atomic<std::uint64_t> taken;
  std::atomic<std::uint64_t> errors;
  std::array<std::atomic<std::uint8_t>, most_jobs> acknowledged;
};

using world = shared_memory<witness>;

constexpr auto token = boost::asio::as_tuple(boost::asio::use_awaitable);

void note_fence(world const& w, std::uint64_t fence) {
  auto last = w->fence.load();
  while (last < fence && !w->fence.compare_exchange_weak(last, fence)) {
  }
}

std::uint64_t number_of(job_id const& id) {
  std::uint64_t n = 0;
  for (std::size_t i = 8; i != 16; ++i) n = n << 8U | id.data[i];
  return n;
}

awaitable<void> work(sqlite_store const& store, world const& w, std::string me) {
  std::string const payload(700, 'p');
  auto const quotas = std::array{quota::per_hour(1).burst(1000)};
  for (std::uint64_t sequence = 1;; ++sequence) {
    auto const n = w->next.fetch_add(2);
    std::array jobs{job_of(n), job_of(n + 1, payload)};
    for (auto& j : jobs) j.retention = 24h;
    jobs[1].strategy = unique_strategy::until_executed;
    auto const key = "k" + std::to_string(n % 3);
    jobs[1].unique_key = key;
    command::enqueue_jobs const enqueue{"jobs", jobs};
    auto [ec, came] = co_await store.async_execute(enqueue, token);
    if (ec) w->errors.fetch_add(1);
    for (std::size_t i = 0; i < came.size(); ++i) {
      if (came[i].outcome == enqueue_outcome::enqueued) w->acknowledged[n + i] = enqueued_;
    }

    auto const before = w->fence.load();
    auto [ec2, d] =
        co_await store.async_execute(command::dequeue_jobs{"jobs", me, sequence, 3, 1h}, token);
    if (ec2) w->errors.fetch_add(1);
    for (auto const& j : d.jobs) {
      if (j.fence <= before) w->fences_back.fetch_add(1);
      note_fence(w, j.fence);
    }
    for (auto const& j : d.jobs) {
      auto const number = number_of(j.id);
      if (number % 7 == 0) {
        auto [ec3, done] =
            co_await store.async_execute(command::bury_job{"jobs", j.id, j.fence, "dead"}, token);
        if (!ec3) w->acknowledged[number] = dead_;
      } else if (number % 5 == 0) {
        auto [ec3, done] =
            co_await store.async_execute(command::cancel_job{"jobs", j.id, true}, token);
        if (!ec3) w->acknowledged[number] = cancelled_;
      } else {
        std::array const finished{finished_job{j.id, j.fence, "result"}};
        auto [ec3, done] =
            co_await store.async_execute(command::complete_jobs{"jobs", finished}, token);
        if (!ec3 && done[0] == complete_outcome::completed) w->acknowledged[number] = completed_;
      }
    }

    auto [ec4, g] = co_await store.async_execute(
        command::acquire_permit{"permits", me, permits, 20ms, {}}, token);
    if (g.granted) {
      note_fence(w, g.fence);
      co_await store.async_execute(command::release_permit{"permits", me, g.fence}, token);
    }
    auto [ec5, t] = co_await store.async_execute(command::take{"bucket", quotas, 1, {}}, token);
    if (t.allowed) w->taken.fetch_add(1);
  }
}

/// What the file must be, whenever it is looked at.
void check(std::string const& path, world const& w, std::uint64_t first) {
  connection db{path};
  BOOST_TEST_REQUIRE(db.text("PRAGMA quick_check") == "ok");
  auto const queue = db.text("SELECT queue FROM weir_queues");
  auto const states = [&](std::string const& what) {
    return db.number("SELECT count(*) FROM weir_jobs WHERE " + what);
  };

  // R1. (Those of killed holders are there until their time is over.)
  BOOST_TEST(db.number("SELECT count(*) FROM weir_permits WHERE key = CAST('permits' AS BLOB)") <=
             permits);
  // R2.
  BOOST_TEST(db.number("SELECT coalesce(max(n), 0) FROM (SELECT count(*) n FROM weir_jobs WHERE "
                       "state = 0 AND unique_key <> x'' GROUP BY unique_key)") <= 1);
  BOOST_TEST(
      db.number("SELECT count(*) FROM weir_keys k LEFT JOIN weir_jobs j ON j.queue = k.queue "
                "AND j.id = k.owner AND j.state = 0 WHERE j.id IS NULL") == 0);
  // R3: nothing that was granted is forgotten.
  if (w->taken.load() > 0) {
    BOOST_TEST(w->taken.load() <= 1000U);
    BOOST_TEST(db.number("SELECT count(*) FROM weir_buckets") == 1);
  }
  // R4: the sum, and each job that was acknowledged in the state that was.
  for (std::string const column : {"enqueued = waiting + completed + dead + cancelled + purged",
                                   "pointer <= (SELECT min(vesting) FROM weir_jobs)"}) {
    BOOST_TEST(db.number("SELECT count(*) FROM weir_queues WHERE NOT (" + column + ")") == 0);
  }
  BOOST_TEST(db.number("SELECT coalesce(sum(enqueued), 0) FROM weir_queues") == states("1"));
  BOOST_TEST(db.number("SELECT coalesce(sum(waiting), 0) FROM weir_queues") == states("state = 0"));
  BOOST_TEST(db.number("SELECT jobs FROM weir_state") == states("1"));
  BOOST_TEST(db.number("SELECT permits FROM weir_state") ==
             db.number("SELECT count(*) FROM weir_permits"));
  for (auto n = first; n < w->next.load(); ++n) {
    auto const said = w->acknowledged[n].load();
    if (said == unknown) continue;
    auto const state = db.text(
        "SELECT state FROM weir_jobs WHERE queue = " + queue + " AND id = " + "x'0100000000000000" +
        [&] {
          char hex[17];
          std::snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(n));
          return std::string{hex};
        }() +
        "'");
    BOOST_TEST_REQUIRE(!state.empty(), "job " << n << " was acknowledged and is gone");
    static constexpr std::array<char const*, 5> after{"", "", "2", "3", "4"};
    if (said != enqueued_) BOOST_TEST_REQUIRE(state == after[said]);
  }
  // R5.
  BOOST_TEST(w->fences_back.load() == 0U);
  BOOST_TEST(static_cast<std::uint64_t>(db.number("SELECT fence FROM weir_state")) >=
             w->fence.load());
  BOOST_TEST(w->errors.load() == 0U);
}

void kill_over_and_over(std::string const& path, std::string const& notes, int times,
                        std::mt19937& random, bool when_ready) {
  world const w{notes};
  for (int i = 0; i != times; ++i) {
    auto const first = w->next.load();
    w->ready = 0;
    helper writer{"sqlite_kills_helper/writer",
                  {"WEIR_TEST_FILE=" + path, "WEIR_TEST_WITNESS=" + notes}};
    while (when_ready && w->ready.load() == 0) std::this_thread::sleep_for(100us);
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 12'000});
    writer.kill();
    writer.wait();
    if (w->ready.load() != 0) check(path, w, first);
  }
  if (w->ready.load() != 0) check(path, w, 0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_kills)

BOOST_AUTO_TEST_CASE(R1_to_R5_hold_after_each_of_200_kills) {
  directory const home;
  std::mt19937 random{7};
  kill_over_and_over(home.file(), home.file("witness"), 200, random, true);
  world const w{home.file("witness")};
  BOOST_TEST(w->next.load() > 1000U, "little was done between the kills");

  // And work goes on: what the killed ones had is given out again once their leases are over.
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), home.file(), quick()};
  auto const stats = *ask(io, store, command::read_queue_stats{"jobs"});
  BOOST_TEST(stats.enqueued ==
             stats.pending + stats.leased + stats.completed + stats.dead + stats.cancelled);
  auto const later = store.get_clock().system_now() + 2h;
  for (std::uint64_t left = stats.pending + stats.leased; left != 0;) {
    auto const d =
        *ask(io, store, command::at{command::dequeue_jobs{"jobs", "heir", 0, 100, 1h}, later});
    BOOST_TEST_REQUIRE(!d.jobs.empty());
    left -= d.jobs.size();
  }
}

BOOST_AUTO_TEST_CASE(R4_holds_when_it_is_killed_while_it_makes_the_file) {
  std::mt19937 random{8};
  for (int i = 0; i != 40; ++i) {
    directory const home;
    world const w{home.file("witness")};
    helper writer{"sqlite_kills_helper/writer",
                  {"WEIR_TEST_FILE=" + home.file(), "WEIR_TEST_WITNESS=" + home.file("witness")}};
    while (!std::filesystem::exists(home.file())) std::this_thread::sleep_for(50us);
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 4000});
    writer.kill();
    writer.wait();
    boost::asio::io_context io;
    sqlite_store const store{io.get_executor(), home.file(), quick()};
    BOOST_TEST_REQUIRE(ask(io, store, command::read_queue_stats{"jobs"}).has_value());
    if (w->next.load() != 0 && w->ready.load() != 0) check(home.file(), w, 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_kills_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(writer) {
  end_with_the_test();
  world const w{told("WEIR_TEST_WITNESS")};
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), told("WEIR_TEST_FILE"), quick()};
  store.async_open([&](error_code ec) {
    if (ec) w->errors.fetch_add(1);
    w->ready = 1;
  });
  for (int i = 0; i != 4; ++i) {
    auto const me = "process " + std::to_string(::getpid()) + ", " + std::to_string(i);
    co_spawn(io, work(store, w, me), boost::asio::detached);
  }
  io.run();
}

BOOST_AUTO_TEST_SUITE_END()
