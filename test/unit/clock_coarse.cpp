// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/clock/coarse.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using weir::coarse_clock;
using weir::duration;
using weir::system_clock;

static_assert(weir::host_clock<coarse_clock>);
static_assert(std::is_empty_v<coarse_clock>);

BOOST_AUTO_TEST_SUITE(clock_coarse)

BOOST_AUTO_TEST_CASE(is_never_early_and_never_runs_backwards) {
  auto last = coarse_clock::steady_now();
  for (int i = 0; i < 200'000; ++i) {
    auto const now = coarse_clock::steady_now();
    BOOST_REQUIRE((now <= system_clock::steady_now()));
    BOOST_REQUIRE((now >= last));
    last = now;
  }
}

BOOST_AUTO_TEST_CASE(neither_does_it_between_threads) {
  auto const reads = [] {
    auto last = coarse_clock::steady_now();
    bool in_order = true;
    for (int i = 0; i < 100'000; ++i) {
      auto const now = coarse_clock::steady_now();
      in_order = in_order && now >= last && now <= system_clock::steady_now();
      last = now;
    }
    return in_order;
  };
  bool other = false;
  std::thread second{[&] { other = reads(); }};
  bool const mine = reads();
  second.join();
  BOOST_TEST(mine);
  BOOST_TEST(other);
}

// A tick that the kernel makes late makes single reads late, too. That is not the clock's doing, so
// the best of them is asked.
BOOST_AUTO_TEST_CASE(is_late_by_no_more_than_its_resolution) {
  BOOST_TEST((coarse_clock::resolution() > 0ns));
  BOOST_TEST((coarse_clock::resolution() <= 20ms));
  auto const first = coarse_clock::steady_now();
  auto least = duration::max();
  for (auto now = first; now < first + 3 * coarse_clock::resolution();) {
    auto const before = system_clock::steady_now();
    now = coarse_clock::steady_now();
    least = std::min(least, duration{before - now});
  }
  BOOST_TEST((least <= coarse_clock::resolution()));
}

BOOST_AUTO_TEST_CASE(waits_until_its_own_time_has_come) {
  asio::io_context io;
  coarse_clock const clock;
  auto const until = clock.steady_now() + 5ms;
  bool done = false;
  clock.async_wait_until(io.get_executor(), until, [&](weir::error_code ec) {
    BOOST_TEST(!ec);
    BOOST_TEST((clock.steady_now() >= until));
    done = true;
  });
  io.run();
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(keeps_the_time_of_a_memory_store) {
  asio::io_context io;
  weir::basic_memory_store<coarse_clock> const store{io.get_executor()};
  weir::rate_limiter const limiter{store, weir::quota::per_hour(2)};
  BOOST_TEST(limiter.try_take("alice")->allowed);
  BOOST_TEST(limiter.try_take("alice")->allowed);
  BOOST_TEST(!limiter.try_take("alice")->allowed);
}

// What the host spent in suspend, as measured, is often a little less than it was and never more.
BOOST_AUTO_TEST_CASE(suspended_time_is_asked_for_once_a_tick_and_never_shrinks) {
  weir::detail::suspended_time suspended;
  int asked = 0;
  auto const at = [&](duration tick, duration measured) {
    return suspended.until(tick, [&] {
      ++asked;
      return measured;
    });
  };
  BOOST_TEST((at(4ms, 10s) == 10s));
  BOOST_TEST((at(4ms, 99s) == 10s));
  BOOST_TEST((at(3ms, 99s) == 10s));  // of a thread that was slow
  BOOST_TEST(asked == 1);
  BOOST_TEST((at(8ms, 10s - 70ns) == 10s));
  BOOST_TEST((at(12ms, 25s) == 25s));
  BOOST_TEST(asked == 3);
}

BOOST_AUTO_TEST_SUITE_END()
