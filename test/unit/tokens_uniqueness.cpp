// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_lease.hpp"
#include "weir/uniqueness.hpp"

namespace {

template <class Store, class Use>
void for_each_operation(ground& g, Store const& store, Use use) {
  uniqueness const u{store, {.ttl = 30s}, g.clock};
  auto const k = std::make_shared<lock>();
  u.async_try_lock("k", [k](error_code, std::optional<lock> got) { *k = std::move(*got); });
  g.settle();

  WEIR_TRIED(u.async_try_lock("a", WEIR_TOKEN));
  WEIR_TRIED(u.async_lock("b", WEIR_TOKEN));
  WEIR_TRIED(u.async_lock("c", {.wait = 1s}, WEIR_TOKEN));
  WEIR_TRIED(u.async_claim("d", 1s, WEIR_TOKEN));
  WEIR_TRIED(u.async_renew(*k, WEIR_TOKEN));
  WEIR_TRIED(u.async_inspect("k", WEIR_TOKEN));
  WEIR_TRIED(u.async_release(std::move(*k), WEIR_TOKEN));
  WEIR_TRIED(u.async_with_lock("e", &seven, WEIR_TOKEN));
  WEIR_TRIED(u.async_with_lock("f", {.wait = 1s}, &nothing, WEIR_TOKEN));
  WEIR_TRIED(u.async_drain(WEIR_TOKEN));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens_uniqueness)

BOOST_AUTO_TEST_CASE(default_token_is_deferred) {
  ground g;
  uniqueness const u{g.local, {}, g.clock};
  int done = 0;
  auto const await = [&]() -> asio::awaitable<void> {
    std::optional<lock> k = co_await u.async_try_lock("a");
    lock l = co_await u.async_lock("b", {.wait = 1s});
    lock m = co_await u.async_lock("c");
    co_await u.async_renew(l);
    BOOST_TEST(co_await u.async_release(std::move(l)));
    BOOST_TEST((co_await u.async_inspect("c")).held);
    BOOST_TEST((co_await u.async_with_lock("d", &seven)).value() == 7);
    BOOST_TEST(co_await u.async_with_lock("d", {.wait = 1s}, &nothing));
    bool const first = co_await u.async_claim("payment 17", 24h);
    BOOST_TEST(first);
    co_await u.async_drain();
    ++done;
  };
  asio::co_spawn(g.io, await, asio::detached);
  g.settle();
  BOOST_TEST(done == 1);
}

BOOST_AUTO_TEST_SUITE_END()
