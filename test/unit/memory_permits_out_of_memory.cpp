// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Each allocation of a step fails in turn: the step throws, and has changed nothing.

#include "failing_allocations.hpp"
#include "weir/store/memory/locks.hpp"
#include "weir/store/memory/permits.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <functional>
#include <new>
#include <string>

namespace {

using namespace weir;
using weir_test::allocations_left;
using namespace std::chrono_literals;

constexpr time_point start{1'000'000s};

std::string long_name(std::string const& s) { return s + std::string(60, '.'); }

struct table : detail::memory_permits, detail::memory_locks {
  table() : detail::memory_permits{memory_options{}}, detail::memory_locks{memory_options{}} {}
  using detail::memory_locks::apply;
  using detail::memory_locks::locks;
  using detail::memory_permits::apply;
  using detail::memory_permits::lines;

  permit_grant acquire(std::string const& holder, std::uint32_t limit, duration patience = 0s) {
    return apply(command::acquire_permit{key, holder, limit, 1h, patience}, start).value();
  }
  std::string key = long_name("key");
};

// What can be seen of the key.
std::string look(table& s) {
  auto const census = s.apply(command::inspect_permits{s.key, 100}, start).value();
  auto seen = std::to_string(s.lines().size()) + "/" + std::to_string(s.lines().keys()) + "/" +
              std::to_string(s.locks().size()) + "/" + std::to_string(s.locks().keys()) + ":" +
              std::to_string(census.in_use) + "+" + std::to_string(census.waiting);
  for (auto const& p : census.holders) seen += " " + p.holder + std::to_string(p.fence);
  return seen;
}

void fail_everywhere(std::function<void(table&)> const& prepare,
                     std::function<void(table&)> const& step) {
  for (int n = 0;; ++n) {
    BOOST_REQUIRE(n < 100);
    table s;
    prepare(s);
    auto const before = look(s);
    bool failed = false;
    allocations_left = n;
    try {
      step(s);
    } catch (std::bad_alloc const&) {
      failed = true;
    }
    allocations_left = -1;
    if (!failed) {
      BOOST_TEST(n > 0);
      BOOST_TEST(look(s) != before);
      return;
    }
    BOOST_TEST(look(s) == before);
    step(s);  // and what was left behind still works
    BOOST_TEST(look(s) != before);
  }
}

auto holding(int n, std::uint32_t limit, duration patience = 0s) {
  return [=](table& s) {
    for (int i = 0; i < n; ++i) s.acquire(long_name("h" + std::to_string(i)), limit, patience);
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_permits_out_of_memory)

BOOST_AUTO_TEST_CASE(R8_a_failed_grant_changes_nothing) {
  auto const newcomer = long_name("newcomer");
  auto const acquire = [&](table& s) { s.acquire(newcomer, 100); };
  for (auto const others : {0, 1, 4, 16, 17}) {  // alone, few, about to be many, many
    fail_everywhere(holding(others, 100), acquire);
  }
}

BOOST_AUTO_TEST_CASE(R8_a_failed_place_in_line_changes_nothing) {
  auto const newcomer = long_name("newcomer");
  auto const wait = [&](table& s) { s.acquire(newcomer, 1, 1h); };
  for (auto const others : {1, 2, 5, 17, 18}) fail_everywhere(holding(others, 1, 1h), wait);
}

BOOST_AUTO_TEST_CASE(R8_a_failed_grant_keeps_the_ticket) {
  auto const waiter = long_name("waiter");
  fail_everywhere(
      [&](table& s) {
        holding(3, 3)(s);
        s.acquire(waiter, 3, 1h);
        s.apply(command::release_permit{s.key, long_name("h0"), 0}, start).value();
      },
      [&](table& s) { s.acquire(waiter, 3, 1h); });
}

BOOST_AUTO_TEST_CASE(R8_a_failed_lock_changes_nothing) {
  auto const holder = long_name("holder");
  fail_everywhere(
      [](table&) {},
      [&](table& s) { s.apply(command::acquire_lock{s.key, holder, 1h}, start).value(); });
}

BOOST_AUTO_TEST_CASE(R7_a_wait_that_cannot_begin_ends) {
  auto const waiter = long_name("waiter");
  for (int n = 0; n < 20; ++n) {
    table s;
    boost::asio::io_context io;
    holding(1, 1)(s);
    s.acquire(waiter, 1, 1h);
    bool failed = false;
    int ended = 0;
    auto const executor = io.get_executor();
    boost::asio::any_completion_handler<void(error_code, hint)> handler{
        [&](error_code ec, hint) { ended += ec ? 1 : 100; }};
    allocations_left = n;
    try {
      s.await(command::await_permit{s.key, waiter}, start, std::move(handler), executor);
    } catch (std::exception const&) {  // Asio may call it a bad executor
      failed = true;
    }
    allocations_left = -1;
    io.poll();
    bool const waits = !failed && ended == 0;
    io.restart();
    s.apply(command::release_permit{s.key, long_name("h0"), 0}, start).value();
    io.poll();
    BOOST_TEST(ended == (failed ? 0 : waits ? 100 : 1));
    if (waits) return;
  }
  BOOST_ERROR("never waited");
}

BOOST_AUTO_TEST_SUITE_END()
