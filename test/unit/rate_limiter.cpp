// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/rate_limiter.hpp"

#include "weir/clock/manual.hpp"
#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/error.hpp"
#include "weir/key_policy.hpp"
#include "weir/quota.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <concepts>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
namespace asio = boost::asio;
namespace command = weir::command;
using weir::decision;
using weir::errc;
using weir::error_code;
using weir::quota;

namespace {

using store_type = weir::basic_memory_store<weir::manual_clock>;
using limiter_type = weir::rate_limiter<store_type, weir::manual_clock>;

constexpr auto ten = quota::per_second(10);

struct bed {
  asio::io_context io;
  weir::manual_clock clock;
  store_type store{io.get_executor(), {}, clock};
  limiter_type limiter{store, ten, clock};

  void run() {
    io.restart();
    io.poll();
  }

  // Runs a coroutine to its end, without time.
  template <class Body>
  void spawn(Body&& body) {
    bool done = false;
    asio::co_spawn(io, body, [&](std::exception_ptr e) {
      done = true;
      if (e) std::rethrow_exception(e);
    });
    run();
    BOOST_TEST_REQUIRE(done);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rate_limiter_in_process)

BOOST_AUTO_TEST_CASE(takes_until_none_is_left) {
  bed b;
  for (unsigned i = 0; i != 10; ++i)
    BOOST_TEST(b.limiter.try_take("alice").value().remaining == 9 - i);
  auto const d = b.limiter.try_take("alice").value();
  BOOST_TEST(!d.allowed);
  BOOST_TEST((d.retry_after == 100ms));
  BOOST_TEST(b.limiter.try_take("bob", 10).value().allowed);
  b.clock.advance(300ms);
  BOOST_TEST(b.limiter.peek("alice", {.cost = 3}).value().allowed);
  BOOST_TEST(b.limiter.try_take("alice", 3).value().allowed);
  BOOST_TEST(!b.limiter.peek("alice").value().allowed);
  BOOST_TEST(b.limiter.reset("alice").has_value());
  BOOST_TEST(b.limiter.try_take("alice", 10).value().allowed);
}

BOOST_AUTO_TEST_CASE(reserves_ahead_without_waiting) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k", 10).value().allowed);
  auto d = b.limiter.reserve("k", {.cost = 2, .wait = 1s}).value();
  BOOST_TEST(d.allowed);
  BOOST_TEST((d.wait == 200ms));
  BOOST_TEST((b.limiter.peek("k", {.cost = 1, .wait = 1s}).value().wait == 300ms));
  auto const receipt = b.limiter.refund("k", d, {.before_instant = true}).value();
  BOOST_TEST(receipt.credited == 2U);
  BOOST_TEST((b.limiter.reserve("k", {.cost = 1, .wait = 1s}).value().wait == 100ms));
}

BOOST_AUTO_TEST_CASE(F23_a_grant_is_consumed_by_its_refund) {
  bed b;
  auto grant = b.limiter.try_take("k", 6).value();
  BOOST_TEST(b.limiter.refund("k", grant).value().credited == 6U);
  BOOST_TEST(!grant.allowed);
  BOOST_TEST(b.limiter.try_take("k", 6).value().allowed);  // the same state as before the refund
  auto const again = b.limiter.refund("k", grant).value();
  BOOST_TEST(again.credited == 0U);
  BOOST_TEST(again.forfeited == 0U);
  auto denied = b.limiter.try_take("k", 6).value();
  BOOST_TEST(b.limiter.refund("k", denied).value().forfeited == 0U);
  BOOST_TEST(b.limiter.peek("k").value().remaining == 4U);
}

BOOST_AUTO_TEST_CASE(several_quotas_bind_together) {
  bed b;
  quota const both[] = {quota::per_second(5), quota::per_minute(8)};
  weir::rate_limiter limiter{b.store, std::span<quota const>{both}, b.clock};
  BOOST_TEST(limiter.quotas().size() == 2U);
  BOOST_TEST(limiter.try_take("k", 5).value().binding == 0);
  b.clock.advance(1s);
  BOOST_TEST(limiter.try_take("k", 3).value().binding == 1);
  BOOST_TEST(!limiter.try_take("k").value().allowed);
}

BOOST_AUTO_TEST_CASE(F27_the_store_sees_digests_unless_told_otherwise) {
  bed b;
  BOOST_TEST(b.limiter.try_take("token", 4).value().allowed);
  auto const stored = [&](std::string_view key) {
    command::peek_bucket const c{.key = key, .quotas = {&ten, 1}, .cost = 1, .max_wait = {}};
    return b.store.execute(c).value().remaining;
  };
  BOOST_TEST(stored("token") == 10U);
  BOOST_TEST(stored(weir::sha256_key{}("token").view()) == 6U);

  weir::rate_limiter raw{b.store, ten, b.clock, weir::raw_key{}};
  BOOST_TEST(raw.try_take("token", 7).value().allowed);
  BOOST_TEST(stored("token") == 3U);

  weir::rate_limiter keyed{b.store, ten, b.clock, weir::hmac_key{"secret"}};
  BOOST_TEST(keyed.try_take("token", 10).value().allowed);
  BOOST_TEST(stored(weir::hmac_key{"secret"}("token").view()) == 0U);
}

BOOST_AUTO_TEST_CASE(bad_input_is_a_typed_error_and_changes_nothing) {
  bed b;
  auto const& l = b.limiter;
  BOOST_TEST((l.try_take("").error() == errc::invalid_key));
  BOOST_TEST((l.peek("").error() == errc::invalid_key));
  BOOST_TEST((l.reset("").error() == errc::invalid_key));
  auto grant = l.try_take("k").value();
  BOOST_TEST((l.refund("", grant).error() == errc::invalid_key));
  BOOST_TEST((l.try_take("k", 0).error() == errc::invalid_cost));
  BOOST_TEST((l.try_take("k", 11).error() == errc::cost_exceeds_capacity));
  BOOST_TEST((l.reserve("k", {.cost = 1, .wait = -1ns}).error() == errc::invalid_wait));
  BOOST_TEST((l.reserve("k", {.cost = 1, .wait = weir::limits::span + 1ns}).error() ==
              errc::invalid_wait));
  BOOST_TEST((l.try_take(std::string(64 * 1024, 'k')).has_value()));  // a digest is short

  weir::rate_limiter raw{b.store, ten, b.clock, weir::raw_key{}};
  BOOST_TEST((raw.try_take("").error() == errc::invalid_key));
  BOOST_TEST((raw.try_take(std::string(1025, 'k')).error() == errc::invalid_key));
  BOOST_TEST(raw.try_take(std::string(1024, 'k')).has_value());
  weir::rate_limiter keyed{b.store, ten, b.clock, weir::hmac_key{"secret"}};
  BOOST_TEST((keyed.try_take("").error() == errc::invalid_key));
  BOOST_TEST(l.peek("k").value().remaining == 9U);
}

BOOST_AUTO_TEST_CASE(bad_quotas_fail_every_call_and_can_be_validated) {
  bed b;
  std::vector<quota> const five(5, ten);
  for (auto const quotas :
       {std::span<quota const>{}, std::span{five}, std::span<quota const>{}.first(0)}) {
    weir::rate_limiter const limiter{b.store, quotas, b.clock};
    BOOST_TEST((limiter.try_take("k").error() == errc::invalid_quota));
    BOOST_TEST((limiter_type::validate(quotas) == errc::invalid_quota));
  }
  for (auto const& q : {quota{}, quota::per_second(0), ten.burst(0), quota::per(1, -1s)}) {
    weir::rate_limiter const limiter{b.store, q, b.clock};
    BOOST_TEST((limiter.try_take("k").error() == errc::invalid_quota));
    BOOST_TEST((limiter_type::validate(std::span{&q, 1}) == errc::invalid_quota));
  }
  BOOST_TEST(!limiter_type::validate(std::span{five}.first(4)));
  weir::rate_limiter const large{b.store, quota::per_second(4'000'000'000), b.clock};
  BOOST_TEST((large.try_take("k").error() == errc::quota_too_large));
  BOOST_TEST((large.peek("k").error() == errc::quota_too_large));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rate_limiter_asynchronously)

BOOST_AUTO_TEST_CASE(every_operation_can_be_awaited) {
  bed b;
  auto body = [&]() -> asio::awaitable<void> {
    decision d = co_await b.limiter.async_try_take("k");
    BOOST_TEST(d.remaining == 9U);
    d = co_await b.limiter.async_try_take("k", 4);
    BOOST_TEST(d.remaining == 5U);
    auto receipt = co_await b.limiter.async_refund("k", d);
    BOOST_TEST(receipt.credited == 4U);
    receipt = co_await b.limiter.async_refund("k", d);
    BOOST_TEST(receipt.forfeited == 0U);
    d = co_await b.limiter.async_peek("k");
    BOOST_TEST(d.remaining == 9U);
    d = co_await b.limiter.async_peek("k", {.cost = 10, .wait = 1s});
    BOOST_TEST((d.wait == 100ms));
    d = co_await b.limiter.async_take("k", {.cost = 9});
    BOOST_TEST(d.remaining == 0U);
    d = co_await b.limiter.async_reserve("k", {.cost = 2, .wait = 1s});
    BOOST_TEST((d.wait == 200ms));
    receipt = co_await b.limiter.async_refund("k", d, {.before_instant = true});
    BOOST_TEST(receipt.credited == 2U);
    d = co_await b.limiter.async_try_take("k");
    BOOST_TEST(!d.allowed);
    co_await b.limiter.async_reset("k");
    d = co_await b.limiter.async_take("k", {.cost = 10});
    BOOST_TEST(d.allowed);
  };
  b.spawn(body);
}

BOOST_AUTO_TEST_CASE(every_kind_of_token) {
  bed b;
  error_code ec = asio::error::fault;
  b.limiter.async_try_take("k", [&](error_code e, decision const& d) {
    ec = e;
    BOOST_TEST(d.allowed);
  });
  BOOST_TEST((ec == asio::error::fault));  // never inline
  b.run();
  BOOST_TEST(!ec);

  auto taken = b.limiter.async_take("k", {.cost = 2}, asio::use_future);
  auto peeked = b.limiter.async_peek("k", asio::use_future);
  b.run();
  BOOST_TEST(taken.get().remaining == 7U);
  BOOST_TEST(peeked.get().remaining == 7U);

  auto body = [&]() -> asio::awaitable<void> {
    auto [ec1, d] = co_await b.limiter.async_try_take("k", 11, asio::as_tuple);
    BOOST_TEST((ec1 == errc::cost_exceeds_capacity));
    auto [ec2, again] = co_await b.limiter.async_take(
        "k", {.cost = 1}, asio::cancel_after(1h, asio::as_tuple(asio::deferred)));
    BOOST_TEST(!ec2);
    BOOST_TEST(again.remaining == 6U);
    auto operation = b.limiter.async_try_take("k", 2, asio::deferred);
    d = co_await std::move(operation);
    BOOST_TEST(d.remaining == 4U);
  };
  b.spawn(body);
}

BOOST_AUTO_TEST_CASE(errors_are_the_same_as_in_process) {
  bed b;
  auto body = [&]() -> asio::awaitable<void> {
    auto [ec, d] = co_await b.limiter.async_take("", {.cost = 1}, asio::as_tuple);
    BOOST_TEST((ec == errc::invalid_key));
    std::tie(ec, d) = co_await b.limiter.async_take("k", {.cost = 0}, asio::as_tuple);
    BOOST_TEST((ec == errc::invalid_cost));
    std::tie(ec, d) = co_await b.limiter.async_take("k", {.cost = 1, .wait = -1s}, asio::as_tuple);
    BOOST_TEST((ec == errc::invalid_wait));
    std::tie(ec, d) = co_await b.limiter.async_peek("k", {.cost = 11}, asio::as_tuple);
    BOOST_TEST((ec == errc::cost_exceeds_capacity));
    auto grant = b.limiter.try_take("k").value();
    auto [refused, receipt] = co_await b.limiter.async_refund("", grant, asio::as_tuple);
    BOOST_TEST((refused == errc::invalid_key));
    BOOST_TEST(!grant.allowed);
    auto [failed, hint] = co_await b.limiter.async_reset("", asio::as_tuple);
    BOOST_TEST((failed == errc::invalid_key));
  };
  b.spawn(body);
}

BOOST_AUTO_TEST_CASE(a_key_need_not_outlive_the_call) {
  bed b;
  weir::rate_limiter limiter{b.store, ten, b.clock, weir::raw_key{}};
  for (std::size_t const size : {5U, 500U}) {
    std::string key(size, 'a');
    auto operation = limiter.async_try_take(key, 3, asio::use_future);
    auto later = limiter.async_take(key, {.cost = 3}, asio::deferred);
    key.assign(size, 'b');
    auto future = std::move(later)(asio::use_future);
    b.run();
    BOOST_TEST(operation.get().remaining == 7U);
    BOOST_TEST(future.get().remaining == 4U);
    BOOST_TEST(limiter.peek(std::string(size, 'b')).value().remaining == 10U);
  }
}

BOOST_AUTO_TEST_CASE(the_default_token_can_be_rebound_and_handlers_run_on_their_executor) {
  bed b;
  asio::io_context other;
  bool called = false;
  b.limiter.async_take(
      "k", {.cost = 1},
      asio::bind_executor(other, [&](error_code, decision const&) { called = true; }));
  b.run();
  BOOST_TEST(!called);
  other.run();
  BOOST_TEST(called);
  static_assert(std::same_as<limiter_type::default_token, asio::deferred_t>);
}

BOOST_AUTO_TEST_SUITE_END()
