// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_TOKENS_LEASE_HPP
#define WEIR_TEST_UNIT_TOKENS_LEASE_HPP

#include "lease_bed.hpp"
#include "weir/detail/spawn.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <tuple>
#include <utility>

// Every kind of completion token. The file that includes this defines what they are tried on:
//
//     template <class Store, class Use> void for_each_operation(ground& g, Store const& store, Use
//     use);
//
// which calls `use(name, start)` for each operation, where `start(token)` starts it.
using namespace lease_test;

#define WEIR_TRIED(call)                                                                           \
  use(#call, [=](auto&& token) {                                                                   \
    auto&& t = token;                                                                              \
    return call;                                                                                   \
  })
#define WEIR_TOKEN std::forward<decltype(token)>(t)

namespace {

inline asio::awaitable<int> seven() { co_return 7; }
inline asio::awaitable<void> nothing() { co_return; }

template <class Store, class Use>
void for_each_operation(ground& g, Store const& store, Use use);

template <class Use>
void under_away(Use use) {
  ground g;
  for_each_operation(g, g.remote, [&](char const* name, auto start) {
    BOOST_TEST_CONTEXT(name) { use(g, start); }
  });
}
template <class Use>
void under_here(Use use) {
  ground g;
  for_each_operation(g, g.local, [&](char const* name, auto start) {
    BOOST_TEST_CONTEXT(name) { use(g, start); }
  });
}

inline error_code error_in(error_code ec) { return ec; }
inline error_code error_in(std::exception_ptr const& e) { return detail::error_of(e); }

/// Runs what is posted until `done`, without letting time pass.
template <class Done>
void run_until(ground& g, Done done) {
  for (int i = 0; i < 100 && !done(); ++i) g.settle();
}

/// A handler for anything.
auto count(int& calls) {
  return [&calls](auto first, auto&&...) { calls += error_in(first) ? 100 : 1; };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(callback) {
  auto const use = [](ground& g, auto const& start) {
    int calls = 0;
    start([token = std::make_unique<int>(1), done = count(calls)](auto first, auto&&...) {
      done(first);
    });
    BOOST_TEST(calls == 0);  // never inline
    g.settle();
    BOOST_TEST(calls == 1);
  };
  under_here(use);
  under_away(use);
}

BOOST_AUTO_TEST_CASE(callback_on_another_executor) {
  under_away([](ground& g, auto const& start) {
    asio::io_context other;
    int calls = 0;
    start(
        asio::bind_executor(other.get_executor(), [&, done = count(calls)](auto first, auto&&...) {
          BOOST_TEST(other.get_executor().running_in_this_thread());
          done(first);
        }));
    run_until(g, [&] {
      other.restart();
      other.poll();
      return calls != 0;
    });
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_CASE(deferred_and_awaited) {
  auto const use = [](ground& g, auto const& start) {
    bool done = false;
    auto const await = [&]() -> asio::awaitable<void> {
      auto operation = start(asio::deferred);
      co_await std::move(operation);
      done = true;
    };
    asio::co_spawn(g.io, await, asio::detached);
    g.settle();
    BOOST_TEST(done);
  };
  under_here(use);
  under_away(use);
}

BOOST_AUTO_TEST_CASE(deferred_and_never_started) {
  under_away([](ground& g, auto const& start) {
    {
      auto operation = start(asio::deferred);
    }
    g.settle();
    BOOST_TEST(g.wire->held.empty());
  });
}

BOOST_AUTO_TEST_CASE(as_tuple_use_awaitable) {
  under_away([](ground& g, auto const& start) {
    int calls = 0;
    auto const await = [&]() -> asio::awaitable<void> {
      auto const answer = co_await start(asio::as_tuple(asio::use_awaitable));
      calls += error_in(std::get<0>(answer)) ? 100 : 1;
    };
    asio::co_spawn(g.io, await, asio::detached);
    g.settle();
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_CASE(use_future) {
  under_away([](ground& g, auto const& start) {
    auto future = start(asio::use_future);
    // The system's threads carry out what is left of it.
    while (future.wait_for(1ms) != std::future_status::ready) g.settle();
    BOOST_CHECK_NO_THROW(future.get());
  });
}

BOOST_AUTO_TEST_CASE(detached) {
  under_away([](ground& g, auto const& start) {
    start(asio::detached);
    BOOST_TEST(g.settle() > 0u);
  });
}

BOOST_AUTO_TEST_CASE(cancel_after) {
  under_away([](ground& g, auto const& start) {
    int calls = 0;
    start(asio::cancel_after(1h, count(calls)));
    run_until(g, [&] { return calls != 0; });
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_SUITE_END()

#endif
