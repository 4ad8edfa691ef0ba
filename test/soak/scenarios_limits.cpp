// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/nemesis.hpp"
#include "soak/stage.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/dice.hpp"

#include <array>
#include <vector>

namespace soak {

/// The cost of a release does not grow with those who wait.
asio::awaitable<verdict> waiters(stage const& s) {
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 10s, .poll = poll}};
  std::array<double, 2> rates{};
  std::size_t at = 0;
  for (std::size_t const n : {10U, 300U}) {
    std::size_t grants = 0;
    auto const since = boot_now();
    auto const until = since + ns_of(6s);
    auto const key = "crowd-" + std::to_string(n);
    co_await s.crowd(n, [&](std::size_t) -> asio::awaitable<void> {
      while (boot_now() < until) {
        auto [ec, permit] = co_await limiter.async_acquire(key, {.wait = 3s}, token);
        if (ec) continue;
        ++grants;
        co_await limiter.async_release(std::move(permit), token);
      }
    });
    rates[at++] = per_second(grants, since);
  }
  co_return verdict{rates[1] >= rates[0] / 3, text_of(rates[0]) + " grants/s with 10 waiters, " +
                                                  text_of(rates[1]) + " with 300"};
}

/// Those who die waiting hold nobody up for longer than their patience.
asio::awaitable<verdict> killed_waiters(stage const& s) {
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 10s, .poll = poll}};
  auto [ec, held] = co_await limiter.async_acquire("line", {.wait = 10s}, token);
  if (ec) co_return verdict{false, ec.message()};
  co_await s.crowd(200, [&](std::size_t i) -> asio::awaitable<void> {
    auto const holder = "ghost-" + std::to_string(i);
    co_await s.at.async_execute(
        weir::command::acquire_permit{
            .key = "line", .holder = holder, .limit = 1, .ttl = 10s, .patience = 2s},
        token);
  });
  co_await limiter.async_release(std::move(held), token);
  auto const since = boot_now();
  auto [late, permit] = co_await limiter.async_acquire("line", {.wait = 30s}, token);
  auto const waited = static_cast<double>(boot_now() - since) / 1e9;
  co_return verdict{!late && waited < 5,
                    late ? late.message()
                         : "behind 200 of the dead: " + text_of(waited) + " s, patience 2 s"};
}

/// Those who wait elsewhere cost an unrelated limiter little.
asio::awaitable<verdict> hints(stage const& s) {
  auto const& url = s.given.at.url;
  if (!url.starts_with("redis") && !url.starts_with("nats")) {
    co_return verdict{true, "this engine has no subscriptions of many clients", true};
  }
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 10s, .poll = poll}};
  auto const rate = [&]() -> asio::awaitable<double> {
    std::size_t grants = 0;
    auto const since = boot_now();
    while (boot_now() < since + ns_of(4s)) {
      auto [ec, permit] = co_await limiter.async_acquire("alone", {.wait = 3s}, token);
      if (ec) continue;
      ++grants;
      co_await limiter.async_release(std::move(permit), token);
    }
    co_return per_second(grants, since);
  };
  auto const before = co_await rate();
  std::vector<store> others;
  for (int i = 0; i != 200; ++i) {
    others.push_back(open_store(s.ex, s.given.at));
    others.back().async_execute(weir::command::await_jobs{0},
                                [](error_code, weir::hint) {});  // as an idle worker does
  }
  co_await s.pause(3s);
  auto const beside = co_await rate();
  for (auto const& o : others) o.close();
  co_return verdict{beside >= before / 2, text_of(before) + " grants/s alone, " + text_of(beside) +
                                              " beside 200 subscribed stores"};
}

/// The engine takes and refuses the same quotas as memory, and gives as many tokens as they say.
asio::awaitable<verdict> quota_range(stage const& s) {
  weir::memory_store memory{s.ex};
  weir::testing::dice chance{s.given.seed};
  std::size_t taken = 0;
  for (int i = 0; i != 300; ++i) {
    auto const rate = 1 + chance.below(i % 2 == 0 ? 20'000 : 2'000'000);
    std::array const one{weir::quota::per_second(rate).burst(1 + chance.below(rate))};
    auto const key = "rate-" + std::to_string(i);
    weir::command::take const c{key, one, 1, {}};
    auto const here = memory.execute(c);
    auto const [ec, there] = co_await s.at.async_execute(c, token);
    if (here.has_error() ? ec != here.error() : static_cast<bool>(ec)) {
      co_return verdict{false, std::to_string(rate) + " a second: memory says " +
                                   (here.has_error() ? here.error().message() : "yes") + ", this " +
                                   (ec ? ec.message() : "yes")};
    }
    taken += there.allowed;
  }
  // At one instant, as far as its clock can tell.
  weir::rate_limiter const limiter{s.at, weir::quota::per_hour(3600).burst(3600)};
  std::uint64_t given = 0;
  auto const since = boot_now();
  for (int i = 0; i != 40; ++i) {
    auto const [ec, d] = co_await limiter.async_take("hour", {.cost = 100}, token);
    if (!ec && d.allowed) given += 100;
  }
  auto const seconds = static_cast<std::uint64_t>((boot_now() - since) / 1'000'000'000);
  co_return verdict{given >= 3600 && given <= 3601 + seconds,
                    std::to_string(taken) + " of 300 rates are taken, as in memory; " +
                        std::to_string(given) + " tokens of 3600 in " + std::to_string(seconds) +
                        " s"};
}

/// A client that is far away gets its share beside near ones, and keeps its permits.
asio::awaitable<verdict> far(stage const& s) {
  network way{s.given.at};
  if (way.through().url == s.given.at.url) {
    co_return verdict{true, "no proxy can be put before this engine", true};
  }
  way.lengthen(4ms);
  auto const there = open_store(s.ex, way.through(), s.given.defect);
  auto const grants = [&](store const& from, weir::duration how_long,
                          std::size_t& got) -> asio::awaitable<void> {
    weir::limiter const limiter{from, {.limit = 1, .ttl = 10s, .poll = poll}};
    for (auto const until = boot_now() + ns_of(how_long); boot_now() < until;) {
      auto [ec, permit] = co_await limiter.async_acquire("contested", {.wait = 3s}, token);
      if (ec) continue;
      ++got;
      co_await limiter.async_release(std::move(permit), token);
    }
  };
  std::size_t near = 0;
  co_await grants(s.at, 200ms, near);  // on NATS whoever comes first decides for all
  std::size_t alone = 0;
  co_await grants(there, 4s, alone);
  // Somebody far away holds another permit of the same kind, and renews it meanwhile.
  weir::limiter const held{there, {.limit = 1, .ttl = 10s, .poll = poll}};
  auto [none, permit] = co_await held.async_acquire("held", {.wait = 10s}, token);
  if (none) co_return verdict{false, none.message()};
  std::size_t beside = 0;
  near = 0;
  std::size_t lost = 0;
  co_await s.crowd(10, [&](std::size_t who) -> asio::awaitable<void> {
    if (who > 1) {
      co_await grants(s.at, 4s, near);
    } else if (who == 1) {
      co_await grants(there, 4s, beside);
    } else {
      for (auto const until = boot_now() + ns_of(4s); boot_now() < until;) {
        auto const [ec, expiry] = co_await held.async_renew(permit, token);
        lost += static_cast<bool>(ec);
        co_await s.pause(50ms);
      }
    }
  });
  co_await held.async_release(std::move(permit), token);
  there.close();
  co_return verdict{lost == 0 && beside >= alone / 10,
                    std::to_string(alone) + " grants far away and alone, " +
                        std::to_string(beside) + " beside " + std::to_string(near) + " near, " +
                        std::to_string(lost) + " renewals lost"};
}

}  // namespace soak
