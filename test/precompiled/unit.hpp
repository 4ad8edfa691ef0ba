// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the unit tests include: see CMakeLists.txt.

#include "precompiled.hpp"
#include "unit/jobs_bed.hpp"
#include "unit/lease_bed.hpp"
#include "unit/worker_fixture.hpp"
#include "weir/limiter.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

// Nobody calls these: what they use is compiled here.

namespace lease_test {

template <class Store>
void compile_once(ground& g, Store const& store) {
  asio::cancellation_signal stop;
  auto const with = [&](auto handler, auto start) {
    start(handler);
    start(asio::bind_cancellation_slot(stop.slot(), handler));
  };
  limiter<Store, manual_clock> const l{store, {}, g.clock};
  with(outcome<std::optional<permit>>{}.handler(), [&](auto h) { l.async_try_acquire("k", h); });
  with(outcome<permit>{}.handler(), [&](auto h) { l.async_acquire("k", {.wait = 1s}, h); });
  with(outcome<bool>{}.handler(), [&](auto h) { l.async_release(permit{}, h); });
  with(outcome<permit_census>{}.handler(), [&](auto h) { l.async_inspect("k", 1, h); });
  uniqueness<Store, manual_clock> const u{store, {}, g.clock};
  with(outcome<std::optional<lock>>{}.handler(), [&](auto h) { u.async_try_lock("k", h); });
  with(outcome<lock>{}.handler(), [&](auto h) { u.async_lock("k", {.wait = 1s}, h); });
  with(outcome<bool>{}.handler(), [&](auto h) { u.async_release(lock{}, h); });
  with(outcome<lock_info>{}.handler(), [&](auto h) { u.async_inspect("k", h); });
  auto const any = [](auto...) {};
  with(any, [&](auto h) { l.async_renew(permit{}, h); });
  with(any, [&](auto h) { u.async_renew(lock{}, h); });
  with(any, [&](auto h) { l.async_drain(h); });
  with(any, [&](auto h) { u.async_drain(h); });
  auto const body = [](auto const&) -> asio::awaitable<void> { co_return; };
  with(any, [&](auto h) { l.async_with_permit("k", body, h); });
  with(any, [&](auto h) { u.async_with_lock("k", body, h); });
}
inline void compile_once(ground& g) {
  compile_once(g, g.local);
  compile_once(g, g.remote);
}

}  // namespace lease_test

namespace test {

inline void compile_once(worker_fixture& f) {
  auto w = f.make_worker();
  w.handle<note>([](note const&) {});
  f.start(w);
  f.enqueue(note{});
  (void)f.stats();
  (void)f.enqueue("kind", "");
  (void)f.find({});
  (void)f.dead();
}

}  // namespace test
