// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/clock/system.hpp"
#include "weir/clock/timer_wait.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <type_traits>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using weir::error_code;
using weir::steady_time;

static_assert(weir::clock<weir::system_clock>);
static_assert(weir::host_clock<weir::system_clock>);
static_assert(std::is_empty_v<weir::system_clock>);

namespace {

struct fixture {
  asio::io_context io;
  weir::system_clock clock;
};

/// A host clock that goes on by one second whenever it is read, beside a timer that hardly sleeps.
struct ticking {
  static inline int reads = 0;
  static constexpr weir::duration longest_sleep = 1ns;
  static steady_time steady_now() noexcept { return steady_time{std::chrono::seconds{reads++}}; }
};

/// A host clock that stands still beside it.
struct still {
  static constexpr weir::duration longest_sleep = 1ns;
  static steady_time steady_now() noexcept { return {}; }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(clock_system, fixture)

BOOST_AUTO_TEST_CASE(steady_time_does_not_run_backwards_and_the_date_is_the_date) {
  auto last = clock.steady_now();
  for (int i = 0; i < 1000; ++i) {
    auto const now = clock.steady_now();
    BOOST_REQUIRE((now >= last));
    last = now;
  }
  auto const before = std::chrono::system_clock::now();
  auto const date = clock.system_now();
  BOOST_TEST((date >= before));
  BOOST_TEST((date <= std::chrono::system_clock::now()));
}

BOOST_AUTO_TEST_CASE(a_time_in_the_past_is_posted_at_once) {
  int called = 0;
  for (auto const t : {steady_time::min(), steady_time{}, clock.steady_now()}) {
    clock.async_wait_until(io.get_executor(), t, [&](error_code ec) { called += ec ? 100 : 1; });
  }
  BOOST_TEST(called == 0);  // never inline
  io.poll();
  BOOST_TEST(called == 3);
}

BOOST_AUTO_TEST_CASE(a_wait_is_never_too_short) {
  auto const t = clock.steady_now() + 1ms;
  bool called = false;
  clock.async_wait_until(io.get_executor(), t, [&](error_code ec) {
    called = true;
    BOOST_TEST(!ec);
    BOOST_TEST((clock.steady_now() >= t));
  });
  BOOST_TEST(!called);
  io.run();
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(R7_every_kind_of_cancellation_ends_the_longest_wait) {
  using type = asio::cancellation_type;
  for (auto const kind : {type::terminal, type::partial, type::total}) {
    asio::cancellation_signal signal;
    error_code seen;
    clock.async_wait_until(
        io.get_executor(), steady_time::max(),
        asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { seen = ec; }));
    io.restart();
    io.poll();
    BOOST_TEST(!seen);
    BOOST_TEST(!io.stopped());
    signal.emit(kind);
    BOOST_TEST(!seen);  // never inline
    io.run();
    BOOST_TEST(seen == asio::error::operation_aborted);
    signal.emit(kind);  // too late, and harmless
  }
}

BOOST_AUTO_TEST_CASE(R7_a_wait_dies_with_its_context) {
  auto const witness = std::make_shared<int>(0);
  {
    asio::io_context dying;
    clock.async_wait_until(dying.get_executor(), steady_time::max(),
                           [witness](error_code) { BOOST_ERROR("called"); });
    auto body = [&, held = witness]() -> asio::awaitable<void> {
      co_await clock.async_wait_until(dying.get_executor(), steady_time::max());
    };
    asio::co_spawn(dying, body, asio::detached);
    dying.poll();
  }
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(takes_every_kind_of_token_and_executor) {
  auto const soon = clock.steady_now() + 1us;
  asio::thread_pool pool{1};
  clock.async_wait_until(pool.get_executor(), soon, asio::use_future).get();
  clock.async_wait_until(asio::make_strand(pool), soon, asio::use_future).get();
  clock.async_wait_until(io.get_executor(), soon, asio::detached);
  int called = 0;
  asio::io_context other;
  clock.async_wait_until(io.get_executor(), soon,
                         asio::bind_executor(other, [&](error_code) { ++called; }));
  auto body = [&]() -> asio::awaitable<void> {
    co_await clock.async_wait_until(io.get_executor(), soon);
    auto const aborted = asio::as_tuple(asio::cancel_after(1us, asio::use_awaitable));
    auto const [ec] =
        co_await clock.async_wait_until(io.get_executor(), steady_time::max(), aborted);
    BOOST_TEST(ec == asio::error::operation_aborted);
    ++called;
  };
  asio::co_spawn(io, body, asio::detached);
  io.run();
  BOOST_TEST(called == 1);
  other.run();
  BOOST_TEST(called == 2);
}

BOOST_AUTO_TEST_CASE(F52_the_hosts_clock_and_not_the_timer_decides) {
  ticking::reads = 0;
  bool called = false;
  weir::detail::async_timer_wait<ticking>(io.get_executor(), steady_time{10s}, [&](error_code ec) {
    called = true;
    BOOST_TEST(!ec);
    BOOST_TEST(ticking::reads > 10);
  });
  io.run();
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(F52_no_sleep_is_longer_than_promised) {
  BOOST_TEST((weir::system_clock::longest_sleep <= 5s));
}

// Wherever a wait stands (asleep, or on its way from the timer), a cancellation ends it.
BOOST_AUTO_TEST_CASE(R7_no_cancellation_is_lost_between_two_sleeps) {
  for (int steps = 0; steps < 20; ++steps) {
    asio::io_context mine;
    asio::cancellation_signal signal;
    error_code seen;
    weir::detail::async_timer_wait<still>(
        mine.get_executor(), steady_time{1s},
        asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { seen = ec; }));
    for (int i = 0; i < steps; ++i) mine.poll_one();
    BOOST_REQUIRE(!seen);
    asio::post(mine, [&] { signal.emit(asio::cancellation_type::total); });
    for (int i = 0; i < 1000 && !seen; ++i) mine.run_one();
    BOOST_TEST(seen == asio::error::operation_aborted);
  }
}

BOOST_AUTO_TEST_SUITE_END()
