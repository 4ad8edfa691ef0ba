// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "lease_bed.hpp"
#include "weir/limiter.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

// Every operation of the lease primitives under every kind of completion token.
using namespace bed;

namespace {

asio::awaitable<int> seven() { co_return 7; }
asio::awaitable<void> nothing() { co_return; }

/// Calls `use(name, start)` for each operation, where `start(token)` starts it.
template <class Store, class Use>
void for_each_operation(ground& g, Store const& store, Use use) {
  limiter const l{store, {.limit = 5, .ttl = 30s}, g.clock};
  uniqueness const u{store, {.ttl = 30s}, g.clock};
  auto const p = std::make_shared<permit>();
  l.async_try_acquire("k", [p](error_code, std::optional<permit> got) { *p = std::move(*got); });
  auto const k = std::make_shared<lock>();
  u.async_try_lock("k", [k](error_code, std::optional<lock> got) { *k = std::move(*got); });
  g.settle();

#define WEIR_OPERATION(call)                                                               \
  use(#call, [=](auto&& token) {                                                           \
    auto&& t = token;                                                                      \
    return call;                                                                           \
  })
#define WEIR_T std::forward<decltype(token)>(t)
  WEIR_OPERATION(l.async_try_acquire("a", WEIR_T));
  WEIR_OPERATION(l.async_acquire("b", WEIR_T));
  WEIR_OPERATION(l.async_acquire("c", {.wait = 1s}, WEIR_T));
  WEIR_OPERATION(l.async_renew(*p, WEIR_T));
  WEIR_OPERATION(l.async_inspect("k", 10, WEIR_T));
  WEIR_OPERATION(l.async_release(std::move(*p), WEIR_T));
  WEIR_OPERATION(l.async_with_permit("d", &seven, WEIR_T));
  WEIR_OPERATION(l.async_with_permit("e", {.wait = 1s}, &nothing, WEIR_T));
  WEIR_OPERATION(l.async_drain(WEIR_T));
  WEIR_OPERATION(u.async_try_lock("a", WEIR_T));
  WEIR_OPERATION(u.async_lock("b", WEIR_T));
  WEIR_OPERATION(u.async_lock("c", {.wait = 1s}, WEIR_T));
  WEIR_OPERATION(u.async_claim("d", 1s, WEIR_T));
  WEIR_OPERATION(u.async_renew(*k, WEIR_T));
  WEIR_OPERATION(u.async_inspect("k", WEIR_T));
  WEIR_OPERATION(u.async_release(std::move(*k), WEIR_T));
  WEIR_OPERATION(u.async_with_lock("e", &seven, WEIR_T));
  WEIR_OPERATION(u.async_with_lock("f", {.wait = 1s}, &nothing, WEIR_T));
  WEIR_OPERATION(u.async_drain(WEIR_T));
#undef WEIR_T
#undef WEIR_OPERATION
}

template <class Use>
void under(Use use) {
  ground g;
  auto const in = [&](auto const& store) {
    for_each_operation(g, store, [&](char const* name, auto start) {
      BOOST_TEST_CONTEXT(name) { use(g, start); }
    });
  };
  in(g.local);
  in(g.remote);
}

error_code error_in(error_code ec) { return ec; }
error_code error_in(std::exception_ptr const& e) { return detail::error_of(e); }

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

BOOST_AUTO_TEST_SUITE(tokens_lease)

BOOST_AUTO_TEST_CASE(callback) {
  under([](ground& g, auto const& start) {
    int calls = 0;
    start(count(calls));
    BOOST_TEST(calls == 0);  // never inline
    g.settle();
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_CASE(callback_that_is_move_only) {
  under([](ground& g, auto const& start) {
    int calls = 0;
    start([token = std::make_unique<int>(1), done = count(calls)](auto first, auto&&...) { done(first); });
    g.settle();
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_CASE(callback_on_another_executor) {
  under([](ground& g, auto const& start) {
    asio::io_context other;
    int calls = 0;
    start(asio::bind_executor(other.get_executor(), [&, done = count(calls)](auto first, auto&&...) {
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

BOOST_AUTO_TEST_CASE(deferred_and_never_started) {
  under([](ground& g, auto const& start) {
    auto operation = start(asio::deferred);
    BOOST_TEST(g.settle() == 0u);
  });
}

BOOST_AUTO_TEST_CASE(deferred_and_awaited) {
  under([](ground& g, auto const& start) {
    bool done = false;
    auto const await = [&]() -> asio::awaitable<void> {
      auto operation = start(asio::deferred);
      co_await std::move(operation);
      done = true;
    };
    asio::co_spawn(g.io, await, asio::detached);
    g.settle();
    BOOST_TEST(done);
  });
}

BOOST_AUTO_TEST_CASE(use_awaitable) {
  under([](ground& g, auto const& start) {
    bool done = false;
    auto const await = [&]() -> asio::awaitable<void> {
      co_await start(asio::use_awaitable);
      done = true;
    };
    asio::co_spawn(g.io, await, asio::detached);
    g.settle();
    BOOST_TEST(done);
  });
}

BOOST_AUTO_TEST_CASE(as_tuple) {
  under([](ground& g, auto const& start) {
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
  under([](ground& g, auto const& start) {
    auto future = start(asio::use_future);
    g.settle();
    BOOST_TEST((future.wait_for(0s) == std::future_status::ready));
    BOOST_CHECK_NO_THROW(future.get());
  });
}

BOOST_AUTO_TEST_CASE(detached) {
  under([](ground& g, auto const& start) {
    start(asio::detached);
    BOOST_TEST(g.settle() > 0u);
  });
}

BOOST_AUTO_TEST_CASE(cancel_after_without_running_out) {
  under([](ground& g, auto const& start) {
    int calls = 0;
    start(asio::cancel_after(1h, count(calls)));
    run_until(g, [&] { return calls != 0; });
    BOOST_TEST(calls == 1);
  });
}

BOOST_AUTO_TEST_CASE(cancel_after_in_a_coroutine) {
  under([](ground& g, auto const& start) {
    bool done = false;
    auto const await = [&]() -> asio::awaitable<void> {
      auto operation = start(asio::cancel_after(1h, asio::deferred));
      co_await std::move(operation);
      done = true;
    };
    asio::co_spawn(g.io, await, asio::detached);
    run_until(g, [&] { return done; });
    BOOST_TEST(done);
  });
}

BOOST_AUTO_TEST_CASE(default_token_is_deferred) {
  ground g;
  limiter const l{g.remote, {.limit = 5}, g.clock};
  uniqueness const u{g.local, {}, g.clock};
  int done = 0;
  auto const await = [&]() -> asio::awaitable<void> {
    std::optional<permit> p = co_await l.async_try_acquire("gpt");
    permit q = co_await l.async_acquire("gpt", {.wait = 3s});
    permit r = co_await l.async_acquire("gpt");
    BOOST_TEST(r.in_use() == 3u);
    co_await l.async_renew(q);
    BOOST_TEST(co_await l.async_release(std::move(q)));
    permit_census const c = co_await l.async_inspect("gpt", 10);
    BOOST_TEST(c.in_use == 2u);
    BOOST_TEST(co_await l.async_with_permit("gpt", &seven) == 7);
    BOOST_TEST(co_await l.async_with_permit("gpt", {.wait = 3s}, &seven) == 7);
    co_await l.async_drain();
    lock k = co_await u.async_lock("k");
    BOOST_TEST(!co_await u.async_with_lock("k2", {.wait = 1s}, &seven) == false);
    bool const first = co_await u.async_claim("payment 17", 24h);
    BOOST_TEST(first);
    ++done;
  };
  asio::co_spawn(g.io, await, asio::detached);
  g.settle();
  BOOST_TEST(done == 1);
}

BOOST_AUTO_TEST_SUITE_END()
