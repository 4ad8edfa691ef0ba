// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/clock/manual.hpp"

#include <boost/asio/any_completion_handler.hpp>
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
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using weir::error_code;
using weir::manual_clock;
using weir::steady_time;
using weir::time_point;

static_assert(weir::clock<manual_clock>);
static_assert(weir::host_clock<manual_clock>);

namespace {

struct fixture {
  asio::io_context io;
  manual_clock clock;
  steady_time start = clock.steady_now();
  std::string woken;

  void wait(weir::duration d, char name) {
    clock.async_wait_until(io.get_executor(), start + d,
                           [this, name](error_code ec) { woken += ec ? '!' : name; });
  }
  std::string poll() {
    io.restart();
    io.poll();
    return std::exchange(woken, {});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(clock_manual, fixture)

BOOST_AUTO_TEST_CASE(starts_on_a_fixed_date_of_a_host_that_is_up) {
  BOOST_TEST((clock.system_now() == time_point{std::chrono::seconds{1'767'225'600}}));
  BOOST_TEST((clock.steady_now().time_since_epoch() == 24h));
  manual_clock const other{time_point{5s}, steady_time{7s}};
  BOOST_TEST((other.system_now() == time_point{5s}));
  BOOST_TEST((other.steady_now() == steady_time{7s}));
}

BOOST_AUTO_TEST_CASE(moves_only_when_told) {
  auto const date = clock.system_now();
  clock.advance(3s);
  BOOST_TEST((clock.steady_now() == start + 3s));
  BOOST_TEST((clock.system_now() == date + 3s));
  clock.set(start + 10s);
  BOOST_TEST((clock.steady_now() == start + 10s));
  BOOST_TEST((clock.system_now() == date + 10s));
  clock.advance(0s);
  BOOST_TEST((clock.steady_now() == start + 10s));
}

BOOST_AUTO_TEST_CASE(copies_share_one_time) {
  manual_clock copy = clock;
  wait(1s, 'a');
  BOOST_TEST(copy.waiters() == 1U);
  copy.advance(1s);
  BOOST_TEST((clock.steady_now() == start + 1s));
  BOOST_TEST(poll() == "a");
}

BOOST_AUTO_TEST_CASE(F52_the_date_jumps_both_ways_while_time_stands_still) {
  wait(1h, 'a');
  clock.set_system(time_point{100s});
  BOOST_TEST((clock.system_now() == time_point{100s}));
  clock.set_system(time_point{1'000'000h});
  BOOST_TEST((clock.system_now() == time_point{1'000'000h}));
  BOOST_TEST((clock.steady_now() == start));
  BOOST_TEST(poll() == "");
  clock.advance(1h);
  BOOST_TEST((clock.system_now() == time_point{1'000'001h}));
  BOOST_TEST(poll() == "a");
}

BOOST_AUTO_TEST_CASE(time_never_runs_backwards) {
  clock.advance(5s);
  wait(6s, 'a');
  BOOST_CHECK_THROW(clock.advance(-1ns), std::invalid_argument);
  BOOST_CHECK_THROW(clock.set(start + 4s), std::invalid_argument);
  BOOST_TEST((clock.steady_now() == start + 5s));
  BOOST_TEST(clock.waiters() == 1U);
  clock.set(start + 5s);
  BOOST_TEST(poll() == "");
}

BOOST_AUTO_TEST_CASE(time_and_date_stop_at_the_end_of_the_range) {
  clock.advance(weir::duration::max());
  BOOST_TEST((clock.steady_now() == steady_time::max()));
  BOOST_TEST((clock.system_now() == time_point::max()));
  clock.advance(1h);
  BOOST_TEST((clock.steady_now() == steady_time::max()));
}

BOOST_AUTO_TEST_CASE(wakes_by_deadline_then_by_arrival) {
  wait(3s, 'd');
  wait(1s, 'a');
  wait(2s, 'b');
  wait(1s, 'A');
  wait(2s, 'c');
  clock.advance(2s);
  BOOST_TEST(poll() == "aAbc");
  clock.advance(999ms);
  BOOST_TEST(poll() == "");
  clock.advance(1ms);
  BOOST_TEST(poll() == "d");
}

BOOST_AUTO_TEST_CASE(a_wait_is_over_at_its_deadline_and_not_before) {
  wait(1s, 'a');
  clock.advance(1s - 1ns);
  BOOST_TEST(poll() == "");
  clock.advance(1ns);
  BOOST_TEST(poll() == "a");
}

BOOST_AUTO_TEST_CASE(a_deadline_in_the_past_is_posted_at_once) {
  wait(-1h, 'a');
  wait(0s, 'b');
  clock.async_wait_until(io.get_executor(), steady_time::min(),
                         [&](error_code ec) { woken += ec ? '!' : 'c'; });
  BOOST_TEST(woken == "");  // never inline
  BOOST_TEST(clock.waiters() == 0U);
  BOOST_TEST(poll() == "abc");
}

BOOST_AUTO_TEST_CASE(advance_never_calls_a_handler) {
  wait(1s, 'a');
  clock.advance(1s);
  BOOST_TEST(woken == "");
  BOOST_TEST(poll() == "a");
}

BOOST_AUTO_TEST_CASE(a_test_can_be_driven_from_deadline_to_deadline) {
  BOOST_TEST(!clock.next_deadline().has_value());
  BOOST_TEST(!clock.advance_to_next());
  BOOST_TEST((clock.steady_now() == start));
  wait(5s, 'b');
  wait(2s, 'a');
  wait(5s, 'c');
  BOOST_TEST(clock.waiters() == 3U);
  BOOST_TEST((clock.next_deadline() == start + 2s));
  BOOST_TEST(clock.advance_to_next());
  BOOST_TEST((clock.steady_now() == start + 2s));
  BOOST_TEST(poll() == "a");
  BOOST_TEST(clock.advance_to_next());
  BOOST_TEST(poll() == "bc");
  BOOST_TEST(!clock.advance_to_next());
  BOOST_TEST((clock.steady_now() == start + 5s));
}

BOOST_AUTO_TEST_CASE(R7_every_kind_of_cancellation_ends_a_wait) {
  using type = asio::cancellation_type;
  for (auto const kind : {type::terminal, type::partial, type::total}) {
    asio::cancellation_signal signal;
    error_code seen;
    clock.async_wait_until(
        io.get_executor(), start + 1s,
        asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { seen = ec; }));
    BOOST_TEST(clock.waiters() == 1U);
    signal.emit(kind);
    BOOST_TEST(clock.waiters() == 0U);
    BOOST_TEST(!seen);  // never inline
    poll();
    BOOST_TEST(seen == asio::error::operation_aborted);
    signal.emit(kind);  // too late
  }
}

BOOST_AUTO_TEST_CASE(R8_cancelled_waits_leave_nothing_behind) {
  wait(1s, 'a');
  for (int i = 0; i < 1000; ++i) {
    asio::cancellation_signal signal;
    clock.async_wait_until(io.get_executor(), start + 1h,
                           asio::bind_cancellation_slot(signal.slot(), [](error_code) {}));
    signal.emit(asio::cancellation_type::terminal);
  }
  BOOST_TEST(clock.waiters() == 1U);
  BOOST_TEST((clock.next_deadline() == start + 1s));
}

BOOST_AUTO_TEST_CASE(R7_waits_die_with_their_context) {
  auto const witness = std::make_shared<int>(0);
  {
    asio::io_context dying;
    clock.async_wait_until(dying.get_executor(), start + 1s,
                           [witness](error_code) { BOOST_ERROR("called"); });
    clock.async_wait_until(
        io.get_executor(), start + 2s,
        asio::bind_executor(dying, [witness](error_code) { BOOST_ERROR("called"); }));
    clock.async_wait_until(
        dying.get_executor(), start + 2s,
        asio::bind_executor(io, [witness](error_code) { BOOST_ERROR("called"); }));
    BOOST_TEST(clock.waiters() == 3U);
  }
  BOOST_TEST(witness.use_count() == 1);
  BOOST_TEST(clock.waiters() == 0U);
  clock.advance(1h);
  poll();
}

BOOST_AUTO_TEST_CASE(R7_a_coroutine_that_owns_its_clock_dies_with_its_context) {
  std::weak_ptr<int> weak;
  {
    asio::io_context dying;
    auto body = [&]() -> asio::awaitable<void> {
      manual_clock own;
      auto const alive = std::make_shared<int>(0);
      weak = alive;
      auto ex = asio::any_io_executor{dying.get_executor()};
      co_await own.async_wait_until(ex, own.steady_now() + 1s, asio::use_awaitable);
    };
    asio::co_spawn(dying, body, asio::detached);
    dying.poll();
    BOOST_TEST(!weak.expired());
  }
  BOOST_TEST(weak.expired());
}

BOOST_AUTO_TEST_CASE(R7_a_wait_on_a_dying_context_leaves_nothing_behind) {
  struct waits_again {
    explicit waits_again(std::function<void()> what) : at_end{std::move(what)} {}
    waits_again(waits_again&& other) noexcept : at_end{std::exchange(other.at_end, nullptr)} {}
    ~waits_again() {
      if (at_end) at_end();
    }
    void operator()(error_code) const { BOOST_ERROR("called"); }
    std::function<void()> at_end;
  };
  {
    asio::io_context dying;
    clock.async_wait_until(dying.get_executor(), start + 1s, waits_again{[&] {
                             clock.async_wait_until(dying.get_executor(), start + 1s,
                                                    [](error_code) { BOOST_ERROR("called"); });
                           }});
  }
  BOOST_TEST(clock.waiters() == 0U);
}

BOOST_AUTO_TEST_CASE(R7_waits_end_with_the_last_copy_of_the_clock) {
  error_code seen;
  std::optional<manual_clock> mortal{std::in_place};
  std::optional<manual_clock> copy = mortal;
  mortal->async_wait_until(io.get_executor(), mortal->steady_now() + 1s,
                           [&](error_code ec) { seen = ec; });
  mortal.reset();
  poll();
  BOOST_TEST(!seen);
  copy.reset();
  BOOST_TEST(!seen);  // never inline
  io.restart();
  io.run();
  BOOST_TEST(seen == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_somebody_waits) {
  wait(1s, 'a');
  io.poll();
  BOOST_TEST(!io.stopped());
  clock.advance(1s);
  io.run();
  BOOST_TEST(woken == "a");
}

BOOST_AUTO_TEST_CASE(a_handler_runs_on_its_own_executor) {
  asio::io_context other;
  bool called = false;
  clock.async_wait_until(io.get_executor(), start + 1s,
                         asio::bind_executor(other, [&](error_code) { called = true; }));
  asio::any_completion_handler<void(error_code)> erased =
      asio::bind_executor(other, [&](error_code) { BOOST_TEST(called); });
  clock.async_wait_until(io.get_executor(), start + 1s, std::move(erased));
  clock.advance(1s);
  BOOST_TEST(!called);
  io.poll();
  BOOST_TEST(!called);
  BOOST_TEST(other.poll() == 2U);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(takes_every_kind_of_token) {
  auto const ex = asio::any_io_executor{io.get_executor()};
  auto future = clock.async_wait_until(ex, start + 1s, asio::use_future);
  auto lazy = clock.async_wait_until(ex, start + 1s);  // deferred
  clock.async_wait_until(ex, start + 1s, asio::detached);
  bool done = false;
  auto body = [&]() -> asio::awaitable<void> {
    co_await clock.async_wait_until(ex, start + 1s);
    auto const [ec] =
        co_await clock.async_wait_until(ex, start + 2s, asio::as_tuple(asio::deferred));
    BOOST_TEST(!ec);
    auto const late = asio::as_tuple(asio::cancel_after(1us, asio::deferred));
    auto const [aborted] = co_await clock.async_wait_until(ex, start + 3s, late);
    BOOST_TEST(aborted == asio::error::operation_aborted);
    done = true;
  };
  asio::co_spawn(io, body, asio::detached);
  io.poll();
  BOOST_TEST(clock.waiters() == 3U);
  std::move(lazy)([&](error_code ec) { woken += ec ? '!' : 'l'; });
  BOOST_TEST(clock.waiters() == 4U);
  BOOST_TEST(clock.advance_to_next());
  BOOST_TEST(poll() == "l");
  future.get();
  BOOST_TEST(!done);
  BOOST_TEST(clock.advance_to_next());
  io.restart();
  io.run();
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(a_handler_may_wait_again_and_move_the_clock) {
  int rounds = 0;
  auto again = [&](auto& self) -> void {
    clock.async_wait_until(io.get_executor(), clock.steady_now() + 1s, [&](error_code) {
      if (++rounds == 1000) return;
      self(self);
      clock.advance_to_next();
    });
  };
  again(again);
  clock.advance_to_next();
  io.run();
  BOOST_TEST(rounds == 1000);
  BOOST_TEST((clock.steady_now() == start + 1000s));
}

BOOST_AUTO_TEST_CASE(threads_share_a_clock) {
  constexpr int per_thread = 500;
  std::atomic<int> woken_by_now{0};
  std::atomic<bool> done{false};
  auto const wait_often = [&] {
    asio::io_context mine;
    for (int i = 0; i < per_thread; ++i) {
      auto const t = clock.steady_now() + std::chrono::milliseconds{i % 7};
      clock.async_wait_until(mine.get_executor(), t, [&, t](error_code ec) {
        if (!ec && clock.steady_now() >= t) ++woken_by_now;
      });
      mine.poll();
      mine.restart();
    }
    mine.run();
  };
  std::thread first{wait_often};
  std::thread second{wait_often};
  std::thread mover{[&] {
    while (!done) {
      clock.advance(1ms);
      (void)clock.next_deadline();
      clock.set_system(clock.system_now());
    }
  }};
  first.join();
  second.join();
  done = true;
  mover.join();
  BOOST_TEST(woken_by_now == 2 * per_thread);
  BOOST_TEST(clock.waiters() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
