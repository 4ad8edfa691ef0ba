// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_BROKEN_NETWORK_HPP
#define WEIR_TEST_INTEGRATION_BROKEN_NETWORK_HPP

#include "integration/patience.hpp"
#include "weir/command/buckets.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/quota.hpp"
#include "weir/testing/proxy/plan.hpp"
#include "weir/time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

// What any store says on a network that breaks, and what has to have come of it.
namespace network_test {

using namespace weir;
using namespace std::chrono_literals;
namespace asio = boost::asio;

inline constexpr auto tuple = asio::as_tuple(asio::use_awaitable);
inline constexpr duration lasting = 1h;

/// The errors that a broken network may have.
inline bool is_transport(error_code ec) {
  return ec == errc::outcome_unknown || ec == errc::store_unavailable;
}

/// Calls `round(number, cut)` for a connection that ends at each of so many messages: before it, in
/// it and after it, in both directions.
/// @return how many outcomes were unknown, by what it returns
template <class Round>
std::uint64_t cut_everywhere(std::uint64_t messages, std::uint64_t every, Round round) {
  using testing::proxy_ending;
  using testing::proxy_fault;
  using testing::traffic;
  std::uint64_t unknown = 0;
  int number = 0;
  for (auto const direction : {traffic::to_server, traffic::to_client}) {
    for (auto const fault :
         {proxy_fault::cut_before, proxy_fault::cut_in, proxy_fault::cut_after}) {
      for (std::uint64_t message = 0; message < messages; message += every) {
        testing::planned_fault cut{.fault = fault, .direction = direction, .message = message};
        cut.bytes = 1 + 7 * (message % 3);
        cut.ending = ++number % 2 == 0 ? proxy_ending::reset : proxy_ending::fin;
        BOOST_TEST_CONTEXT("round " << number << ", message " << message) {
          unknown += round("r" + std::to_string(number), cut);
        }
      }
    }
  }
  return unknown;
}

/// Asks until there is an answer.
template <class Store, class C>
asio::awaitable<typename C::result> insist(Store store, C c) {
  static_assert(C::repeatable);
  for (;;) {
    auto [ec, answer] = co_await store.async_execute(c, tuple);
    if (!ec) co_return std::move(answer);
    BOOST_TEST_REQUIRE(is_transport(ec), ec.message());
  }
}

/// The same, of `on(command)`.
template <class On, class C>
typename C::result certain(On& on, C const& c) {
  static_assert(C::repeatable);
  for (;;) {
    auto out = on(c);
    if (out.has_value()) return std::move(out).value();
    BOOST_TEST_REQUIRE(is_transport(out.error()), out.error().message());
  }
}

inline void run(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr failure;
  bool done = false;
  asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
    failure = e;
    done = true;
  });
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return done; }), "it did not end");
  if (failure) std::rethrow_exception(failure);
}

inline void run_out(asio::io_context& io) {
  io.restart();
  io.run_for(weir_test::patience);
  BOOST_TEST(io.stopped(), "something goes on for ever");
}

inline constexpr std::uint64_t tokens = 1000;
// A token comes back in a quarter of an hour, which no test takes.
inline quota const quotas[] = {quota::per(tokens, 240h)};

/// How often something was taken: for certain, and perhaps.
struct spent {
  std::uint64_t certain = 0;
  std::uint64_t unknown = 0;
};

/// About leases and tokens.
template <class Store>
asio::awaitable<void> converse(Store store, spent& takes) {
  command::acquire_permit const permit{"key", "me", 1, lasting, {}};
  auto const granted = co_await insist(store, permit);
  BOOST_TEST(granted.granted);
  command::acquire_lock const lock{"key", "me", lasting};
  auto const held = co_await insist(store, lock);
  BOOST_TEST(held.granted);
  for (int i = 0; i != 3; ++i) {
    command::take const take{"key", quotas, 1, {}};
    auto const [ec, answer] = co_await store.async_execute(take, tuple);
    BOOST_TEST((!ec || is_transport(ec)), ec.message());
    if (!ec) ++takes.certain;
    if (ec == errc::outcome_unknown) ++takes.unknown;
  }
  command::release_permit const back{"key", "me", granted.fence};
  co_await insist(store, back);
  command::release_lock const free{"key", "me", held.fence};
  co_await insist(store, free);
}

/// What it has to have done exactly once, whatever became of its answers.
template <class On>
void check_done(On& direct, spent const& takes) {
  BOOST_TEST(!certain(direct, command::inspect_lock{"key"}).held);
  BOOST_TEST(certain(direct, command::inspect_permits{"key", 0}).in_use == 0U);
  auto const left = certain(direct, command::peek_bucket{"key", quotas, 1, {}}).remaining;
  BOOST_TEST(left <= tokens - takes.certain);
  BOOST_TEST(left >= tokens - takes.certain - takes.unknown);
}

}  // namespace network_test

#endif
