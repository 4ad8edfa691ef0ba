// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "lease_bed.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using namespace lease_test;

namespace {

struct stage : ground {
  limiter<local_store, manual_clock> here{local, {.limit = 1, .ttl = 30s}, clock};
  limiter<remote_store, manual_clock> away{remote, {.limit = 1, .ttl = 30s}, clock};

  asio::awaitable<void> sleep(duration d) const {
    return clock.async_wait_until(io_executor(), clock.steady_now() + d, asio::use_awaitable);
  }
  [[nodiscard]] asio::any_io_executor io_executor() const { return local.get_executor(); }
};

struct ended {
  auto handler() {
    return [this](std::exception_ptr e, auto... value) {
      ++calls;
      ec = detail::error_of(e);
      failure = e;
      if constexpr (sizeof...(value) == 1) result = {std::move(value)...};
    };
  }
  int calls = 0;
  error_code ec;
  std::exception_ptr failure;
  int result = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(with_permit)

BOOST_FIXTURE_TEST_CASE(runs_the_body_while_the_permit_is_held, stage) {
  ended end;
  std::uint64_t fence = 0;
  auto body = [&](permit const& p) -> asio::awaitable<int> {
    fence = p.fence();
    BOOST_TEST(p.key() == "k");
    BOOST_TEST(census(local, "k").in_use == 1u);
    co_await sleep(5s);
    co_return 42;
  };
  here.async_with_permit("k", body, end.handler());
  settle();
  BOOST_TEST(fence != 0u);
  BOOST_TEST(end.calls == 0);
  pass(5s);
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(end.result == 42);
  BOOST_TEST(census(local, "k").in_use == 0u);
  BOOST_TEST(clock.waiters() == 0u);
}

BOOST_FIXTURE_TEST_CASE(completes_when_the_permit_is_free_again, stage) {
  ended end;
  auto body = []() -> asio::awaitable<void> { co_return; };
  away.async_with_permit("k", body, end.handler());
  wire->next.push_back({});
  wire->next.push_back({.answers = false});  // the release
  pass(10s);
  BOOST_TEST(end.calls == 0);
  wire->deliver();
  settle();
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(census(*wire, "k").in_use == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_release_that_hangs_is_waited_for_until_the_lease_is_over, stage) {
  ended end;
  auto body = []() -> asio::awaitable<void> { co_return; };
  wire->next.push_back({});
  wire->next.push_back({.answers = false, .deaf = true});
  away.async_with_permit("k", body, end.handler());
  pass(29s - 1ns);
  BOOST_TEST(end.calls == 0);
  pass(1ns);
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(!end.ec);
}

BOOST_FIXTURE_TEST_CASE(what_the_body_throws_comes_through_and_the_permit_is_free, stage) {
  for (bool const late : {false, true}) {
    ended end;
    auto body = [&]() -> asio::awaitable<int> {
      if (late) co_await sleep(1s);
      throw std::runtime_error{"no"};
    };
    here.async_with_permit("k", body, end.handler());
    pass(2s);
    BOOST_TEST(end.calls == 1);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(end.failure), std::runtime_error,
                          [](auto const& e) { return std::string{e.what()} == "no"; });
    BOOST_TEST(census(local, "k").in_use == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(F42_also_what_is_no_std_exception, stage) {
  ended end;
  auto body = []() -> asio::awaitable<void> {
    throw 42;
    co_return;
  };
  here.async_with_permit("k", body, end.handler());
  settle();
  BOOST_CHECK_THROW(std::rethrow_exception(end.failure), int);
  BOOST_TEST(census(local, "k").in_use == 0u);
}

BOOST_FIXTURE_TEST_CASE(waits_in_line_and_times_out_without_running_the_body, stage) {
  auto const taken = here.try_acquire("k").value();
  ended end;
  bool ran = false;
  auto body = [&]() -> asio::awaitable<void> {
    ran = true;
    co_return;
  };
  here.async_with_permit("k", {.wait = 3s}, body, end.handler());
  pass(3s);
  BOOST_TEST(end.ec == code(errc::timed_out));
  BOOST_TEST(!ran);
}

BOOST_FIXTURE_TEST_CASE(F6_work_longer_than_the_ttl_keeps_its_permit, stage) {
  ended end;
  steady_time seen{};
  auto body = [&](permit const& p) -> asio::awaitable<void> {
    co_await sleep(300s);
    seen = p.expires_at();
  };
  here.async_with_permit("k", body, end.handler());
  for (int i = 0; i < 299; ++i) {
    pass(1s);
    BOOST_TEST(census(local, "k").in_use == 1u);
  }
  pass(1s);
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(!end.ec);
  BOOST_TEST((seen >= clock.steady_now() + 20s));  // the body sees the renewals
}

BOOST_FIXTURE_TEST_CASE(F6_an_outage_shorter_than_the_lease_is_outlived, stage) {
  ended end;
  auto body = [&]() -> asio::awaitable<void> { co_await sleep(60s); };
  away.async_with_permit("k", body, end.handler());
  pass(5s);
  wire->usual = {.executes = false, .error = code(errc::store_unavailable)};
  pass(20s);
  wire->usual = {};
  pass(35s);
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(!end.ec);
  BOOST_TEST(wire->seen["acquire"] == 1);
}

BOOST_AUTO_TEST_CASE(F6_a_lost_lease_cancels_the_body) {
  enum { outage, hanging, taken_away };
  for (auto const why : {outage, hanging, taken_away}) {
    stage s;
    ended end;
    error_code in_body;
    auto body = [&](permit const& p) -> asio::awaitable<int> {
      if (why == taken_away) {
        (void)s.wire->apply(
            command::release_permit{.key = "k", .holder = p.holder(), .fence = p.fence()});
      }
      auto [ec] = co_await s.clock.async_wait_until(s.io_executor(), s.clock.steady_now() + 1h,
                                                    asio::as_tuple(asio::deferred));
      in_body = ec;
      co_return 42;  // it claims success
    };
    s.away.async_with_permit("k", body, end.handler());
    s.settle();
    if (why == outage) s.wire->usual = {.executes = false, .error = code(errc::store_unavailable)};
    if (why == hanging) s.wire->usual = {.answers = false, .deaf = true};
    s.pass(why == taken_away ? 10s - 1ns : 29s - 1ns);
    BOOST_TEST(end.calls == 0);
    s.pass(1ns);
    BOOST_TEST(end.calls == 1);
    BOOST_TEST(in_body == asio::error::operation_aborted);
    BOOST_TEST(end.ec == code(errc::lease_lost));
    BOOST_TEST(s.wire->seen["acquire"] == 1);  // and not silently acquired again
  }
}

BOOST_FIXTURE_TEST_CASE(F12_the_lease_was_over_before_the_body_ended_and_nobody_noticed, stage) {
  ended end;
  auto body = [&]() -> asio::awaitable<void> {
    clock.advance(29s);  // a body that blocks its thread
    co_return;
  };
  here.async_with_permit("k", body, end.handler());
  settle();
  BOOST_TEST(end.ec == code(errc::lease_lost));
}

BOOST_FIXTURE_TEST_CASE(F37_a_keeper_of_its_own_renews_while_the_body_blocks, stage) {
  asio::io_context keeping;
  here.renew_on(keeping.get_executor());
  ended end;
  auto body = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 10; ++i) {  // never suspends: the other thread is this one for a while
      clock.advance(10s);
      keeping.restart();
      keeping.poll();
    }
    co_return;
  };
  here.async_with_permit("k", body, end.handler());
  for (int i = 0; i < 10 && end.calls == 0; ++i) {
    settle();
    keeping.restart();
    keeping.poll();
  }
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(!end.ec);
}

BOOST_FIXTURE_TEST_CASE(F6_the_keepers_context_ends_and_the_body_is_told, stage) {
  auto keeping = std::make_unique<asio::io_context>();
  here.renew_on(keeping->get_executor());
  ended end;
  auto body = [&]() -> asio::awaitable<void> { co_await sleep(1h); };
  here.async_with_permit("k", body, end.handler());
  settle();
  keeping->poll();
  keeping.reset();
  settle();
  BOOST_TEST(end.ec == code(errc::lease_lost));
}

BOOST_FIXTURE_TEST_CASE(nested_ones_hold_both, stage) {
  ended end;
  auto inner = [&](permit const& p) -> asio::awaitable<int> {
    BOOST_TEST(census(local, "a").in_use == 1u);
    BOOST_TEST(p.key() == "b");
    co_await sleep(50s);
    co_return 7;
  };
  auto outer = [&]() -> asio::awaitable<int> {
    auto nested = here.async_with_permit("b", inner, asio::deferred);
    co_return co_await std::move(nested);
  };
  here.async_with_permit("a", outer, end.handler());
  pass(50s);
  BOOST_TEST(end.calls == 1);
  BOOST_TEST(end.result == 7);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(with_permit_cancellation)

BOOST_AUTO_TEST_CASE(reaches_the_body_as_it_is) {
  using type = asio::cancellation_type;
  for (auto const kind : {type::terminal, type::partial, type::total}) {
    stage s;
    ended end;
    asio::cancellation_signal signal;
    type seen = type::none;
    auto body = [&]() -> asio::awaitable<void> {
      auto [ec] = co_await s.clock.async_wait_until(s.io_executor(), s.clock.steady_now() + 1h,
                                                    asio::as_tuple(asio::deferred));
      BOOST_TEST(ec == asio::error::operation_aborted);
      auto const state = co_await asio::this_coro::cancellation_state;
      seen = state.cancelled();
      throw boost::system::system_error{ec};
    };
    s.here.async_with_permit("k", body, asio::bind_cancellation_slot(signal.slot(), end.handler()));
    s.settle();
    signal.emit(kind);
    s.settle();
    BOOST_TEST(static_cast<int>(seen) == static_cast<int>(kind));
    BOOST_TEST(end.ec == asio::error::operation_aborted);
    BOOST_TEST(census(s.local, "k").in_use == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(a_body_may_refuse_and_return_its_result, stage) {
  ended end;
  asio::cancellation_signal signal;
  auto body = [&]() -> asio::awaitable<int> {
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await sleep(10s);
    co_return 42;
  };
  away.async_with_permit("k", body, asio::bind_cancellation_slot(signal.slot(), end.handler()));
  settle();
  signal.emit(asio::cancellation_type::terminal);
  pass(9s);
  BOOST_TEST(end.calls == 0);
  pass(1s);
  BOOST_TEST(end.result == 42);
  BOOST_TEST(!end.ec);
  BOOST_TEST(census(*wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(with_permit_executors)

BOOST_AUTO_TEST_CASE(the_body_runs_on_its_callers_executor) {
  stage s;
  asio::io_context mine;
  ended end;
  bool on_mine = false;
  bool completed_on_mine = false;
  auto body = [&]() -> asio::awaitable<void> {
    on_mine = mine.get_executor().running_in_this_thread();
    co_return;
  };
  s.here.async_with_permit("k", body,
                           asio::bind_executor(mine.get_executor(), [&](std::exception_ptr) {
                             completed_on_mine = mine.get_executor().running_in_this_thread();
                           }));
  s.settle();
  BOOST_TEST(!on_mine);
  for (int i = 0; i < 10; ++i) {
    mine.restart();
    mine.poll();
    s.settle();
  }
  BOOST_TEST(on_mine);
  BOOST_TEST(completed_on_mine);
}

BOOST_AUTO_TEST_CASE(R7_the_context_of_the_store_ends_before_that_of_the_body) {
  asio::io_context mine;
  auto s = std::make_unique<stage>();
  auto clock = s->clock;
  int ran = 0;
  auto body = [&]() -> asio::awaitable<void> {
    ++ran;
    co_await clock.async_wait_until(mine.get_executor(), steady_time::max(), asio::use_awaitable);
  };
  auto const go_on = [&] {
    for (int i = 0; i != 10; ++i) {
      mine.restart();
      mine.poll();
      if (s) s->settle();
    }
  };
  ended away;
  ended here;
  ended behind_away;
  ended behind_here;
  auto const on_mine = [&](ended& e) { return asio::bind_executor(mine, e.handler()); };
  s->away.async_with_permit("k", body, on_mine(away));
  s->here.async_with_permit("k", body, on_mine(here));
  go_on();
  BOOST_TEST(ran == 2);
  s->away.async_with_permit("k", body, on_mine(behind_away));
  s->here.async_with_permit("k", {.wait = 10s}, body, on_mine(behind_here));
  go_on();
  s.reset();
  for (int i = 0; i != 100; ++i) {
    go_on();
    clock.advance(1s);
  }
  BOOST_TEST(ran == 2);
  BOOST_TEST((away.calls == 1 && away.ec == errc::lease_lost));
  BOOST_TEST((here.calls == 1 && here.ec == errc::lease_lost));
  BOOST_TEST((behind_away.calls == 1 && behind_away.ec == asio::error::operation_aborted));
  BOOST_TEST(behind_here.calls == 1);  // it waited on, or was cut short by a permit too late
}

BOOST_AUTO_TEST_CASE(kinds_of_executors) {
  stage s;
  int ran = 0;
  auto body = [&]() -> asio::awaitable<void> {
    ++ran;
    co_return;
  };
  auto const count = [&](std::exception_ptr e) { ran += e ? 100 : 10; };
  s.here.async_with_permit("k", body, asio::bind_executor(asio::make_strand(s.io), count));
  s.settle();
  BOOST_TEST(ran == 11);
  s.here.async_with_permit(
      "k", body, asio::bind_executor(asio::any_completion_executor{s.io.get_executor()}, count));
  s.settle();
  BOOST_TEST(ran == 22);
  s.here.async_with_permit("k", body,
                           asio::any_completion_handler<void(std::exception_ptr)>{count});
  s.settle();
  BOOST_TEST(ran == 33);
}

BOOST_AUTO_TEST_SUITE_END()
