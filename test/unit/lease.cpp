// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/lease.hpp"

#include "lease_bed.hpp"
#include "weir/lease/returns.hpp"
#include "weir/limiter.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace lease_test;

static_assert(std::is_nothrow_default_constructible_v<permit>);
static_assert(std::is_nothrow_move_constructible_v<permit> &&
              std::is_nothrow_move_assignable_v<permit>);
static_assert(!std::is_copy_constructible_v<permit> && !std::is_copy_assignable_v<permit>);
static_assert(std::is_nothrow_destructible_v<permit> && std::is_nothrow_swappable_v<permit>);
static_assert(std::is_nothrow_move_constructible_v<lock> && std::is_nothrow_destructible_v<lock>);
static_assert(!std::is_constructible_v<lock, permit> && !std::is_convertible_v<permit, bool>);
static_assert(std::is_trivially_destructible_v<limiter_options>);
static_assert(std::is_trivially_destructible_v<acquire_options>);

namespace {

struct local_limiter : ground {
  limiter<local_store, manual_clock> of{local, {.limit = 2, .ttl = 30s}, clock};

  permit take(std::string_view key = "k") { return std::move(of.try_acquire(key).value().value()); }
  std::uint32_t in_use(std::string_view key = "k") { return census(local, key).in_use; }
};

struct remote_limiter : ground {
  limiter<remote_store, manual_clock> of{remote, {.limit = 2, .ttl = 30s}, clock};

  permit take() {
    outcome<std::optional<permit>> got;
    of.async_try_acquire("k", got.handler());
    settle();
    return std::move(got.value.value());
  }
  std::uint32_t in_use() { return census(*wire, "k").in_use; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(handles)

BOOST_AUTO_TEST_CASE(an_empty_one_holds_nothing) {
  permit p;
  BOOST_TEST(!p);
  BOOST_TEST(p.key() == "");
  BOOST_TEST(p.holder() == "");
  BOOST_TEST(p.fence() == 0u);
  BOOST_TEST(p.in_use() == 0u);
  BOOST_TEST((p.expires_at() == steady_time{}));
  p.release();
  permit q{std::move(p)};
  BOOST_TEST(!q);
}

BOOST_FIXTURE_TEST_CASE(one_says_what_it_holds, local_limiter) {
  auto const p = take();
  auto const q = take();
  BOOST_TEST(bool{p});
  BOOST_TEST(p.key() == "k");
  BOOST_TEST(p.in_use() == 1u);
  BOOST_TEST(q.in_use() == 2u);
  BOOST_TEST(q.fence() > p.fence());
  BOOST_TEST(p.holder() != q.holder());
  BOOST_TEST((p.expires_at() == clock.steady_now() + 30s));
  auto const known = census(local, "k");
  BOOST_TEST(known.holders[0].holder == p.holder());
  BOOST_TEST(known.holders[0].fence == p.fence());
}

BOOST_FIXTURE_TEST_CASE(going_gives_back, local_limiter) {
  {
    auto const p = take();
  }
  BOOST_TEST(in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(moving_moves_what_is_held, local_limiter) {
  auto p = take();
  auto const fence = p.fence();
  permit q{std::move(p)};
  BOOST_TEST(!p);
  BOOST_TEST(q.fence() == fence);
  BOOST_TEST(q.in_use() == 1u);
  BOOST_TEST(in_use() == 1u);
  p.release();
  BOOST_TEST(in_use() == 1u);
}

BOOST_FIXTURE_TEST_CASE(assigning_gives_back_what_was_held_before, local_limiter) {
  auto p = take("a");
  auto q = take("b");
  q = std::move(p);
  BOOST_TEST(in_use("a") == 1u);
  BOOST_TEST(in_use("b") == 0u);
  BOOST_TEST(q.key() == "a");
  q = permit{};
  BOOST_TEST(in_use("a") == 0u);
}

BOOST_FIXTURE_TEST_CASE(assigning_to_itself_changes_nothing, local_limiter) {
  auto p = take();
  auto& same = p;
  p = std::move(same);
  BOOST_TEST(bool{p});
  BOOST_TEST(in_use() == 1u);
}

BOOST_FIXTURE_TEST_CASE(swapping_exchanges, local_limiter) {
  auto p = take("a");
  permit q;
  swap(p, q);
  BOOST_TEST(!p);
  BOOST_TEST(q.key() == "a");
  p = take("b");
  p.swap(q);
  BOOST_TEST(p.key() == "a");
  BOOST_TEST(q.key() == "b");
  BOOST_TEST(in_use("a") == 1u);
}

BOOST_FIXTURE_TEST_CASE(F7_double_release_frees_one_permit, local_limiter) {
  auto p = take();
  auto const q = take();
  p.release();
  p.release();
  BOOST_TEST(!p);
  BOOST_TEST(in_use() == 1u);
}

BOOST_FIXTURE_TEST_CASE(F1_late_release_leaves_the_successor_alone, local_limiter) {
  auto late = take();
  clock.advance(30s);
  auto const a = take();
  auto const b = take();
  late.release();
  BOOST_TEST(in_use() == 2u);
}

BOOST_FIXTURE_TEST_CASE(one_outlives_its_limiter, local_limiter) {
  permit p;
  {
    limiter other{local, {.limit = 1, .ttl = 30s}, clock};
    p = std::move(other.try_acquire("x").value().value());
  }
  BOOST_TEST(in_use("x") == 1u);
  p.release();
  BOOST_TEST(in_use("x") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(remote_handles)

BOOST_FIXTURE_TEST_CASE(going_starts_a_release, remote_limiter) {
  {
    auto const p = take();
  }
  settle();
  BOOST_TEST(in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(the_names_live_as_long_as_the_release, remote_limiter) {
  auto p = take();
  wire->usual.answers = false;
  p = permit{};
  BOOST_TEST(wire->held.size() == 1u);
  BOOST_TEST(wire->deliver());  // reads key and holder
  BOOST_TEST(in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(the_expiry_counts_from_before_the_request, remote_limiter) {
  wire->usual.answers = false;
  outcome<std::optional<permit>> got;
  auto const sent = clock.steady_now();
  of.async_try_acquire("k", got.handler());
  clock.advance(2s);
  wire->deliver();  // executed now: the store counts from here
  clock.advance(3s);
  settle();
  BOOST_TEST((got.value->expires_at() == sent + 30s));
}

BOOST_FIXTURE_TEST_CASE(a_deferred_operation_counts_from_when_it_is_started, remote_limiter) {
  auto operation = of.async_try_acquire("k", asio::deferred);
  clock.advance(20s);
  outcome<std::optional<permit>> got;
  std::move(operation)(got.handler());
  settle();
  BOOST_TEST((got.value->expires_at() == clock.steady_now() + 30s));
}

BOOST_AUTO_TEST_CASE(R7_one_outlives_its_execution_context) {
  auto b = std::make_unique<remote_limiter>();
  auto const wire = b->wire;
  auto p = b->take();
  auto q = b->take();
  b.reset();
  p.release();
  q = permit{};
  BOOST_TEST(wire->seen["release"] == 0);  // left to the TTL
  BOOST_TEST(census(*wire, "k").in_use == 2u);
  wire->clock.advance(30s);
  BOOST_TEST(census(*wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(R7_one_in_a_handler_that_is_destroyed_with_its_context) {
  auto b = std::make_unique<remote_limiter>();
  auto const wire = b->wire;
  asio::post(b->io, [p = b->take()] { BOOST_TEST(bool{p}); });
  b.reset();
  wire->clock.advance(30s);
  BOOST_TEST(census(*wire, "k").in_use == 0u);
}

BOOST_AUTO_TEST_CASE(R7_a_release_is_under_way_when_the_context_is_destroyed) {
  auto b = std::make_unique<remote_limiter>();
  auto const wire = b->wire;
  auto p = b->take();
  wire->usual.answers = false;
  p.release();
  BOOST_TEST(wire->held.size() == 1u);
  b.reset();
  BOOST_TEST(!wire->deliver());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(drain)

BOOST_FIXTURE_TEST_CASE(completes_at_once_when_nothing_is_under_way, remote_limiter) {
  int drained = 0;
  of.async_drain([&](error_code ec) { drained += ec ? 100 : 1; });
  BOOST_TEST(drained == 0);  // never inline
  settle();
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(waits_for_the_releases_before_it_only, remote_limiter) {
  auto p = take();
  auto q = take();
  wire->usual.answers = false;
  int drained = 0;
  p.release();
  of.async_drain([&](error_code ec) { drained += ec ? 100 : 1; });
  q.release();
  settle();
  BOOST_TEST(drained == 0);
  wire->deliver();
  settle();
  BOOST_TEST(drained == 1);
  of.async_drain([&](error_code ec) { drained += ec ? 100 : 1; });
  settle();
  BOOST_TEST(drained == 1);
  wire->deliver();
  settle();
  BOOST_TEST(drained == 2);
  BOOST_TEST(in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_failed_release_counts_as_over, remote_limiter) {
  auto p = take();
  wire->next.push_back({.executes = false, .error = code(errc::store_unavailable)});
  p.release();
  int drained = 0;
  of.async_drain([&](error_code ec) { drained += ec ? 100 : 1; });
  settle();
  BOOST_TEST(drained == 1);
}

// What was asked is granted when nobody waits for it any more, and is given back then.
BOOST_FIXTURE_TEST_CASE(F45_waits_for_what_comes_of_a_cancelled_acquire, remote_limiter) {
  wire->usual = {.answers = false, .deaf = true};
  asio::cancellation_signal signal;
  int drained = 0;
  error_code how;
  auto ended = [&](error_code ec, permit) {
    how = ec;
    of.async_drain([&](error_code e) { drained += e ? 100 : 1; });
  };
  of.async_acquire("k", asio::bind_cancellation_slot(signal.slot(), ended));
  settle();
  signal.emit(asio::cancellation_type::terminal);
  settle();
  BOOST_TEST(how == asio::error::operation_aborted);
  BOOST_TEST(drained == 0);
  BOOST_TEST(wire->deliver());  // the grant
  settle();
  BOOST_TEST(in_use() == 1u);
  BOOST_TEST(drained == 0);
  BOOST_TEST(wire->deliver());  // its release
  settle();
  BOOST_TEST(in_use() == 0u);
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(waits_for_what_comes_of_an_acquire_that_timed_out, remote_limiter) {
  wire->usual = {.answers = false, .deaf = true};
  outcome<permit> got;
  of.async_acquire("k", {.wait = 1s}, got.handler());
  pass(1s);
  BOOST_TEST(got.done());
  BOOST_TEST(bool{got.ec});
  int drained = 0;
  of.async_drain([&](error_code e) { drained += e ? 100 : 1; });
  settle();
  wire->next.push_back({});  // the release is answered at once
  BOOST_TEST(drained == 0);
  BOOST_TEST(wire->deliver());
  settle();
  BOOST_TEST(in_use() == 0u);
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(can_be_cancelled, remote_limiter) {
  auto p = take();
  wire->usual.answers = false;
  p.release();
  asio::cancellation_signal signal;
  error_code drained;
  of.async_drain(asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { drained = ec; }));
  settle();
  signal.emit(asio::cancellation_type::total);
  settle();
  BOOST_TEST(drained == asio::error::operation_aborted);
  wire->deliver();
  settle();
  BOOST_TEST(in_use() == 0u);
}

BOOST_AUTO_TEST_CASE(R7_its_context_is_destroyed) {
  auto b = std::make_unique<remote_limiter>();
  auto const wire = b->wire;
  auto p = b->take();
  wire->usual.answers = false;
  p.release();
  bool called = false;
  b->of.async_drain([&](error_code) { called = true; });
  b.reset();
  BOOST_TEST(!called);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(gate)

BOOST_AUTO_TEST_CASE(lets_nobody_in_once_closed) {
  detail::context_gate gate;
  BOOST_TEST(gate.enter());
  gate.leave();
  gate.close();
  BOOST_TEST(!gate.enter());
}

BOOST_AUTO_TEST_CASE(closing_waits_for_those_inside) {
  for (int round = 0; round < 50; ++round) {
    auto const gate = std::make_shared<detail::context_gate>();
    auto context = std::make_unique<int>(0);  // what must not be used once the gate is closed
    std::vector<std::thread> users;
    for (int i = 0; i < 2; ++i) {
      users.emplace_back([gate, i, c = context.get()] {
        while (gate->enter()) {
          if (i == 0) *c = *c + 1;
          gate->leave();
        }
      });
    }
    std::this_thread::yield();
    gate->close();
    context.reset();
    for (auto& u : users) u.join();
  }
}

BOOST_AUTO_TEST_SUITE_END()
