// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/process.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/cancel_after.hpp>

namespace soak {

namespace {

/// Holds for a while, now and then for longer than the lease, renewing or not; writes down how long
/// it believes to hold.
template <class Primitive, class Handle>
awaitable<> hold(process& p, Primitive const& primitive, std::string kind, std::string key,
                 std::uint64_t op, Handle handle) {
  auto const style = p.chance.below(20);
  if (style < 17) {
    co_await p.think(40ms);
  } else if (style < 19) {  // longer than the lease, and renews in time
    for (int i = 0; i != 4 && !p.ending; ++i) {
      co_await p.pause(lease / 3);
      auto const [ec, expiry] = co_await primitive.async_renew(handle, token);
      if (ec) {
        p.log.write({.kind = "lost", .op = op, .detail = word_of(ec)});
        break;
      }
      p.log.write({.kind = "held", .op = op, .n = expiry.time_since_epoch().count()});
    }
  } else {  // longer than the lease, and does not know
    co_await p.pause(lease + lease / 4);
  }
  p.log.write({.kind = "drop", .op = op});
  auto const release = p.log.ask("release-" + kind, key, 0s);
  auto const [ec, freed] = co_await primitive.async_release(std::move(handle), token);
  p.log.end(release, ec ? word_of(ec) : freed ? "freed" : "late");
}

/// @param handle null: somebody else has it
void note_grant(process& p, std::uint64_t op, error_code ec, weir::lease const* handle) {
  if (ec || handle == nullptr) {
    p.log.end(op, ec ? word_of(ec) : "refused");
  } else {
    p.log.end(op, "granted", handle->fence(), handle->expires_at().time_since_epoch().count());
  }
}

}  // namespace

awaitable<> permit_client(process& p) {
  while (!p.ending) {
    auto const limit = p.chance.pick(permit_limits);
    weir::limiter const limiter{p.at, {.limit = limit, .ttl = lease, .poll = poll}};
    auto const key = permit_key(limit);
    if (p.chance.chance(30)) {
      auto const op = p.log.ask("try-permit", key, 0s);
      auto [ec, some] = co_await limiter.async_try_acquire(key, token);
      note_grant(p, op, ec, some ? &*some : nullptr);
      if (some) co_await hold(p, limiter, "permit", key, op, std::move(*some));
    } else {
      // Now and then it changes its mind while it waits.
      bool const quits = p.chance.chance(20);
      weir::duration const patience = quits ? p.moment(1s) : 2s;
      auto const op = p.log.ask("permit", key, patience, quits ? "quits" : "");
      auto [ec, permit] =
          co_await limiter.async_acquire(key, {.wait = 2s}, asio::cancel_after(patience, token));
      note_grant(p, op, ec, &permit);
      if (!ec) co_await hold(p, limiter, "permit", key, op, std::move(permit));
    }
    co_await p.think(60ms);
  }
}

awaitable<> lock_client(process& p) {
  weir::uniqueness const once{p.at, {.ttl = lease, .poll = poll}};
  while (!p.ending) {
    auto const key = lock_key(p.chance.below(lock_keys));
    auto const kind = p.chance.below(10);
    if (kind < 2) {
      auto const name = claim_key(p.chance.below(lock_keys));
      auto const op = p.log.ask("claim", name, 0s);
      auto const [ec, first] = co_await once.async_claim(name, claim_ttl, token);
      p.log.end(op, ec ? word_of(ec) : first ? "granted" : "refused");
    } else if (kind < 7) {
      auto const op = p.log.ask("try-lock", key, 0s);
      auto [ec, some] = co_await once.async_try_lock(key, token);
      note_grant(p, op, ec, some ? &*some : nullptr);
      if (some) co_await hold(p, once, "lock", key, op, std::move(*some));
    } else {
      auto const op = p.log.ask("lock", key, 1s);
      auto [ec, lock] = co_await once.async_lock(key, {.wait = 1s}, token);
      note_grant(p, op, ec, &lock);
      if (!ec) co_await hold(p, once, "lock", key, op, std::move(lock));
    }
    co_await p.think(60ms);
  }
}

awaitable<> rate_client(process& p) {
  while (!p.ending) {
    auto const which = p.chance.below(quotas.size());
    weir::rate_limiter const limiter{p.at, quotas[which]};
    auto const key = bucket_key(which);
    auto const patience = p.chance.chance(30) ? weir::duration{500ms} : weir::duration{};
    auto const op = p.log.ask("take", key, patience);
    auto const [ec, d] = co_await limiter.async_take(key, {.wait = patience}, token);
    p.log.end(op, ec ? word_of(ec) : d.allowed ? "granted" : "refused");
    co_await p.think(50ms);
  }
}

/// When it is to end, all of them are still waiting.
awaitable<> crowd_client(process& p) {
  weir::limiter const limiter{p.at, {.limit = crowd_limit, .ttl = lease, .poll = poll}};
  auto const key = permit_key(crowd_limit);
  while (!p.ending) {
    auto const op = p.log.ask("crowd", key, 3s);
    auto [ec, permit] = co_await limiter.async_acquire(key, {.wait = 3s}, token);
    note_grant(p, op, ec, &permit);
    if (ec) continue;
    co_await p.think(20ms);
    p.log.write({.kind = "drop", .op = op});
    co_await limiter.async_release(std::move(permit), token);
  }
}

awaitable<> key_flood_client(process& p) {
  weir::rate_limiter const limiter{p.at, weir::quota::per_second(1).burst(10)};
  while (!p.ending) {
    auto const op = p.log.ask("flood", "-", 0s);
    auto const [ec, d] =
        co_await limiter.async_take("flood-" + std::to_string(p.chance.bits()), {}, token);
    p.log.end(op, ec ? word_of(ec) : "done");
    if (ec) co_await p.pause(50ms);
  }
}

}  // namespace soak
