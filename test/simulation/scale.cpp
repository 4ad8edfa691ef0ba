// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A hundred thousand queues and a thousand workers in virtual time: what they ask the store for,
// and who waits how long.

#include "counting_store.hpp"
#include "driver.hpp"
#include "unit/worker_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <list>
#include <string>

namespace {

using namespace test;
using counted = weir_test::counting_store<memory>;
using counted_worker = weir::worker<counted, weir::manual_clock, weir::constant_backoff>;

using weir::testing::simulation::sanitized;

constexpr std::uint64_t many_queues = sanitized ? 10'000 : 100'000;
constexpr std::uint64_t many_workers = sanitized ? 100 : 1'000;
constexpr std::uint64_t hands = 5;
constexpr std::uint64_t backlog = many_queues / 5;  // of the one tenant that is not quiet
constexpr weir::duration work = 100ms;

struct crowd : worker_fixture {
  crowd() {
    for (std::uint64_t i = 0; i != many_workers; ++i) {
      auto& w = workers.emplace_back(
          asked, weir::worker_options{.concurrency = static_cast<std::uint32_t>(hands), .poll = 1s},
          clock, weir::constant_backoff{10s}, weir::id_source::seeded(i + 1));
      w.handle<note>([this](note const&, weir::job_context& job) -> asio::awaitable<void> {
        auto& longest = job.queue() == "loud" ? loud : quiet;
        longest = std::max(longest, clock.steady_now() - began);
        ++ran;
        co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + work,
                                        asio::use_awaitable);
      });
    }
  }

  /// Lets time pass until so many have run.
  weir::duration until(std::uint64_t wanted) {
    began = clock.steady_now();
    auto const give_up = began + 1h;
    for (settle(); ran < wanted && clock.next_deadline() && *clock.next_deadline() < give_up;) {
      clock.advance_to_next();
      settle();
    }
    return clock.steady_now() - began;
  }

  counted asked{store};
  std::list<counted_worker> workers;
  std::uint64_t ran = 0;
  weir::steady_time began{};
  weir::duration quiet{};
  weir::duration loud{};
};

double seconds(weir::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(scale)

BOOST_AUTO_TEST_CASE(F74_a_hundred_thousand_queues_are_served_by_a_thousand_workers) {
  crowd all;
  for (std::uint64_t i = 0; i != many_queues; ++i) {
    all.enqueue("note", R"({"text":"","number":0})", "quiet " + std::to_string(i));
  }
  for (std::uint64_t i = 0; i != backlog; ++i) {
    all.enqueue("note", R"({"text":"","number":0})", "loud");
  }
  for (auto& w : all.workers) {
    w.async_run([](weir::error_code ec) { BOOST_TEST(!ec, ec.message()); });
  }
  constexpr auto jobs = many_queues + backlog;
  auto const took = all.until(jobs);
  auto const scans = all.asked.asked_for<weir::command::scan_visible_queues>();
  auto const claims = all.asked.asked_for<weir::command::dequeue_jobs>();
  std::cout << jobs << " jobs took " << seconds(took) << " s of virtual time, " << scans
            << " scans, " << claims << " claims, " << all.asked.asked() << " commands; the last of "
            << "the quiet ones began after " << seconds(all.quiet) << " s, of the loud one's after "
            << seconds(all.loud) << " s\n";
  BOOST_TEST(all.ran == jobs);
  // All hands together need this long.
  auto const least = work * static_cast<int>(jobs / (many_workers * hands));
  BOOST_TEST(seconds(took) <= 2 * seconds(least) + 1);
  BOOST_TEST(scans + claims <= 3 * jobs);  // more if all of them went for the same queues
  for (auto& w : all.workers) w.stop();
  all.pass(10s);
}

BOOST_AUTO_TEST_CASE(F84_a_thousand_idle_workers_ask_once_in_a_second_each) {
  crowd all;
  for (auto& w : all.workers) {
    w.async_run([](weir::error_code ec) { BOOST_TEST(!ec, ec.message()); });
  }
  all.pass(5s);
  auto const before = all.asked.asked_for<weir::command::scan_visible_queues>();
  all.pass(20s);
  auto const scans = all.asked.asked_for<weir::command::scan_visible_queues>() - before;
  std::cout << scans << " scans in 20 s\n";
  BOOST_TEST(scans <= 21 * many_workers);
  for (auto& w : all.workers) w.stop();
  all.pass(10s);
}

BOOST_AUTO_TEST_SUITE_END()
