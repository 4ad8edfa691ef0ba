// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Several processes at one file, each with several things in flight: what the promises say must
// hold between them, and nobody is told that the file is busy.

#include "sqlite_bed.hpp"
#include "sqlite_helper.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace sqlite_test;
using boost::asio::awaitable;

constexpr std::uint32_t permits = 3;
constexpr std::uint64_t jobs_each = 300;
constexpr std::uint64_t rounds = 60;
constexpr std::uint64_t processes = 4;

/// What the processes see of each other without the store.
struct witness {
  std::atomic<std::uint64_t> errors;
  std::atomic<std::int64_t> holding;  // a permit, now
  std::atomic<std::int64_t> most_holding;
  std::atomic<std::int64_t> locked;  // inside the lock, now
  std::atomic<std::uint64_t> collisions;
  std::atomic<std::uint64_t> fence;  // the lock's latest
  std::atomic<std::uint64_t> fences_back;
  std::atomic<std::uint64_t> taken;      // tokens
  std::atomic<std::uint64_t> completed;  // jobs, by acknowledgement
  std::array<std::atomic<std::uint32_t>, processes * jobs_each> runs;
};

using world = shared_memory<witness>;

constexpr auto token = boost::asio::as_tuple(boost::asio::use_awaitable);

/// Executes a command; any error counts.
template <class C>
awaitable<typename C::result> tell(sqlite_store const& store, world const& w, C c) {
  auto [ec, answer] = co_await store.async_execute(c, token);
  if (ec) {
    w->errors.fetch_add(1);
    BOOST_TEST_MESSAGE(ec.message());
  }
  co_return answer;
}

awaitable<void> use_permits(sqlite_store const& store, world const& w, std::string holder) {
  for (std::uint64_t n = 0; n != rounds && w->errors.load() == 0;) {
    auto const g =
        co_await tell(store, w, command::acquire_permit{"permits", holder, permits, 1h, 10s});
    if (!g.granted) {
      co_await tell(store, w, command::await_permit{"permits", holder});
      continue;
    }
    auto const now = w->holding.fetch_add(1) + 1;
    auto most = w->most_holding.load();
    while (most < now && !w->most_holding.compare_exchange_weak(most, now)) {
    }
    co_await tell(store, w, command::inspect_lock{"something else"});
    w->holding.fetch_sub(1);
    auto const r = co_await tell(store, w, command::release_permit{"permits", holder, g.fence});
    if (!r.freed) w->errors.fetch_add(1);
    ++n;
  }
}

awaitable<void> use_lock(sqlite_store const& store, world const& w, std::string holder) {
  for (std::uint64_t n = 0; n != rounds && w->errors.load() == 0;) {
    auto const g = co_await tell(store, w, command::acquire_lock{"lock", holder, 1h});
    if (!g.granted) continue;
    if (w->locked.fetch_add(1) != 0) w->collisions.fetch_add(1);
    if (w->fence.exchange(g.fence) >= g.fence) w->fences_back.fetch_add(1);
    co_await tell(store, w, command::inspect_lock{"something else"});
    w->locked.fetch_sub(1);
    co_await tell(store, w, command::release_lock{"lock", holder, g.fence});
    ++n;
  }
}

awaitable<void> use_bucket(sqlite_store const& store, world const& w) {
  std::array const quotas{quota::per_hour(1).burst(200)};
  for (std::uint64_t n = 0; n != 4 * rounds; ++n) {
    auto const d = co_await tell(store, w, command::take{"bucket", quotas, 1, {}});
    if (d.allowed) w->taken.fetch_add(1);
  }
}

awaitable<void> make_jobs(sqlite_store const& store, world const& w, std::uint64_t first) {
  for (std::uint64_t n = first; n != first + jobs_each; ++n) {
    std::vector<new_job> jobs{job_of(n)};
    jobs[0].priority = static_cast<std::uint8_t>(n % 3);
    co_await tell(store, w, command::enqueue_jobs{"jobs", jobs});
  }
}

awaitable<void> run_jobs(sqlite_store const& store, world const& w, std::string holder) {
  std::uint64_t sequence = 0;
  while (w->completed.load() != w->runs.size() && w->errors.load() == 0) {
    auto const d =
        co_await tell(store, w, command::dequeue_jobs{"jobs", holder, ++sequence, 5, 1h});
    std::vector<finished_job> done;
    for (auto const& j : d.jobs) {
      std::uint64_t n = 0;
      for (std::size_t i = 8; i != 16; ++i) n = n << 8U | j.id.data[i];
      w->runs[n].fetch_add(1);
      done.push_back({j.id, j.fence, {}});
    }
    if (done.empty()) continue;
    auto const outcomes = co_await tell(store, w, command::complete_jobs{"jobs", done});
    for (auto const o : outcomes) {
      if (o == complete_outcome::completed) w->completed.fetch_add(1);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_processes)

BOOST_AUTO_TEST_CASE(R1_R2_R3_R4_hold_between_four_processes) {
  directory const home;
  world const w{home.file("witness")};
  {
    std::vector<std::unique_ptr<helper>> all;
    for (std::uint64_t i = 0; i != processes; ++i) {
      all.push_back(std::make_unique<helper>(
          "sqlite_processes_helper/one_of_many",
          std::vector<std::string>{"WEIR_TEST_DIR=" + home.path().string(),
                                   "WEIR_TEST_NUMBER=" + std::to_string(i)}));
    }
    // Once something is wrong, they may wait for each other for ever.
    auto const wrong = [&] { return w->errors + w->collisions + w->fences_back != 0; };
    auto const working = [](auto const& h) { return !h->ended(); };
    while (!wrong() && std::ranges::any_of(all, working)) std::this_thread::sleep_for(2ms);
    if (wrong()) std::ranges::for_each(all, [](auto const& h) { h->kill(); });
    for (auto& h : all) BOOST_TEST(h->wait() == 0);
  }
  BOOST_TEST(w->errors.load() == 0U);
  BOOST_TEST(w->most_holding.load() <= permits);
  BOOST_TEST(w->most_holding.load() >= 2, "nothing happened at the same time");
  BOOST_TEST(w->collisions.load() == 0U);
  BOOST_TEST(w->fences_back.load() == 0U);
  BOOST_TEST(w->taken.load() == 200U);
  BOOST_TEST(std::ranges::all_of(w->runs, [](auto const& n) { return n.load() == 1; }));

  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), home.file(), quick()};
  auto const stats = *ask(io, store, command::read_queue_stats{"jobs"});
  BOOST_TEST(stats.enqueued == w->runs.size());
  BOOST_TEST(stats.completed == w->runs.size());
  BOOST_TEST(stats.pending + stats.leased + stats.dead == 0U);
  BOOST_TEST(ask(io, store, command::inspect_permits{"permits", 0})->in_use == 0U);
  BOOST_TEST(connection{home.file()}.text("PRAGMA integrity_check") == "ok");
}

BOOST_AUTO_TEST_CASE(a_fresh_file_is_made_once_whoever_comes_first) {
  for (int round = 0; round != 3; ++round) {
    directory const home;
    std::vector<std::unique_ptr<helper>> all;
    for (std::uint64_t i = 0; i != processes; ++i) {
      all.push_back(std::make_unique<helper>(
          "sqlite_processes_helper/first_command",
          std::vector<std::string>{"WEIR_TEST_DIR=" + home.path().string()}));
    }
    for (auto& h : all) BOOST_TEST(h->wait() == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sqlite_processes_helper, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(one_of_many) {
  end_with_the_test();
  auto const home = told("WEIR_TEST_DIR");
  auto const number = std::stoull(told("WEIR_TEST_NUMBER"));
  world const w{home + "/witness"};
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), home + "/store.db", quick()};
  auto const me = "process " + std::to_string(number);
  auto const go = [&](awaitable<void> what) {
    co_spawn(io, std::move(what), [](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
    });
  };
  go(use_permits(store, w, me + " a"));
  go(use_permits(store, w, me + " b"));
  go(use_lock(store, w, me));
  go(use_bucket(store, w));
  go(make_jobs(store, w, number * jobs_each));
  go(run_jobs(store, w, me + " a"));
  go(run_jobs(store, w, me + " b"));
  io.run();
}

BOOST_AUTO_TEST_CASE(first_command) {
  boost::asio::io_context io;
  sqlite_store const store{io.get_executor(), told("WEIR_TEST_DIR") + "/store.db", quick()};
  auto const answer =
      ask(io, store, command::acquire_permit{"k", told("WEIR_TEST_DIR"), 9, 1h, {}});
  BOOST_TEST_REQUIRE(answer.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
