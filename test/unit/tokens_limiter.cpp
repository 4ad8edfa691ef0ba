// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_lease.hpp"
#include "weir/limiter.hpp"

namespace {

template <class Store, class Use>
void for_each_operation(ground& g, Store const& store, Use use) {
  limiter const l{store, {.limit = 5, .ttl = 30s}, g.clock};
  auto const p = std::make_shared<permit>();
  l.async_try_acquire("k", [p](error_code, std::optional<permit> got) { *p = std::move(*got); });
  g.settle();

  WEIR_TRIED(l.async_try_acquire("a", WEIR_TOKEN));
  WEIR_TRIED(l.async_acquire("b", WEIR_TOKEN));
  WEIR_TRIED(l.async_acquire("c", {.wait = 1s}, WEIR_TOKEN));
  WEIR_TRIED(l.async_renew(*p, WEIR_TOKEN));
  WEIR_TRIED(l.async_inspect("k", 10, WEIR_TOKEN));
  WEIR_TRIED(l.async_release(std::move(*p), WEIR_TOKEN));
  WEIR_TRIED(l.async_with_permit("d", &seven, WEIR_TOKEN));
  WEIR_TRIED(l.async_with_permit("e", {.wait = 1s}, &nothing, WEIR_TOKEN));
  WEIR_TRIED(l.async_drain(WEIR_TOKEN));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens_limiter)

BOOST_AUTO_TEST_CASE(default_token_is_deferred) {
  ground g;
  limiter const l{g.remote, {.limit = 5}, g.clock};
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
    co_await l.async_with_permit("gpt", {.wait = 3s}, &nothing);
    co_await l.async_drain();
    ++done;
  };
  asio::co_spawn(g.io, await, asio::detached);
  g.settle();
  BOOST_TEST(done == 1);
}

BOOST_AUTO_TEST_SUITE_END()
