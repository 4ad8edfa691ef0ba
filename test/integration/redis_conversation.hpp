// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_CONVERSATION_HPP
#define WEIR_TEST_INTEGRATION_REDIS_CONVERSATION_HPP

#include "integration/redis_server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

// What a store says on a network that breaks, and what has to have come of it.
namespace redis_test {

namespace asio = boost::asio;

inline constexpr auto tuple = asio::as_tuple(asio::use_awaitable);
inline constexpr duration lasting = 1h;

inline job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) out.data[i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[15] = 1;
  return out;
}

/// Nothing but what the tests ask for is said.
inline redis_options quiet(std::string_view prefix) {
  redis_options o;
  o.prefix = prefix;
  o.warn = nullptr;
  o.offline_patience = 20s;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 20ms;
  o.health_check_interval = 1h;
  return o;
}

/// The errors that a broken network may have.
inline bool is_transport(error_code ec) {
  return ec == errc::outcome_unknown || ec == errc::store_unavailable;
}

/// Asks until there is an answer.
template <class C>
asio::awaitable<typename C::result> insist(redis_store store, C c) {
  static_assert(C::repeatable);
  for (;;) {
    auto [ec, answer] = co_await store.async_execute(c, tuple);
    if (!ec) co_return std::move(answer);
    BOOST_TEST_REQUIRE(is_transport(ec), ec.message());
  }
}

inline void run(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr failure;
  bool done = false;
  asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
    failure = e;
    done = true;
  });
  io.restart();
  auto const give_up = std::chrono::steady_clock::now() + 60s;
  while (!done && std::chrono::steady_clock::now() < give_up) io.run_one_for(100ms);
  BOOST_TEST_REQUIRE(done, "it did not end");
  if (failure) std::rethrow_exception(failure);
}

inline void run_out(asio::io_context& io) {
  io.restart();
  io.run_for(30s);
  BOOST_TEST(io.stopped(), "something goes on for ever");
}

inline constexpr std::uint64_t tokens = 1000;
inline quota const quotas[] = {quota::per(tokens, 24h)};

/// How often something was taken: for certain, and perhaps.
struct spent {
  std::uint64_t certain = 0;
  std::uint64_t unknown = 0;
};

inline asio::awaitable<void> converse(redis_store store, spent& takes) {
  command::acquire_permit const permit{"key", "me", 1, lasting, {}};
  auto const granted = co_await insist(store, permit);
  BOOST_TEST(granted.granted);
  command::acquire_lock const lock{"key", "me", lasting};
  auto const held = co_await insist(store, lock);
  BOOST_TEST(held.granted);

  std::array<new_job, 3> jobs{};
  for (std::uint32_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id = id_of(i);
    jobs[i].kind = "kind";
    jobs[i].payload = "payload";
  }
  command::enqueue_jobs const enqueue{"queue", jobs};
  co_await insist(store, enqueue);
  command::dequeue_jobs const dequeue{"queue", "me", 1, 2, lasting};
  auto const got = co_await insist(store, dequeue);
  BOOST_TEST_REQUIRE(got.jobs.size() == 2U);
  BOOST_TEST(got.jobs[0].attempt == 1U);
  std::array const ended{finished_job{got.jobs[0].id, got.jobs[0].fence, {}},
                         finished_job{got.jobs[1].id, got.jobs[1].fence, {}}};
  command::complete_jobs const complete{"queue", ended};
  co_await insist(store, complete);

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

/// Asks until the answer is certain.
template <class C>
typename C::result certain(bed& on, C const& c) {
  static_assert(C::repeatable);
  for (;;) {
    auto out = on(c);
    if (out.has_value()) return std::move(out).value();
    BOOST_TEST_REQUIRE(is_transport(out.error()), out.error().message());
  }
}

/// What a conversation has to have done exactly once, whatever became of its answers.
inline void check_done(redis_address const& address, redis_options const& o, spent const& takes) {
  bed direct{address, o};
  auto const stats = certain(direct, command::read_queue_stats{"queue"});
  BOOST_TEST(stats.enqueued == 3U);
  BOOST_TEST(stats.pending == 1U);
  BOOST_TEST(stats.leased == 0U);
  BOOST_TEST(!certain(direct, command::inspect_lock{"key"}).held);
  BOOST_TEST(certain(direct, command::inspect_permits{"key", 0}).in_use == 0U);
  auto const left = 1 + certain(direct, command::peek_bucket{"key", quotas, 1, {}}).remaining;
  BOOST_TEST(left <= tokens - takes.certain);
  BOOST_TEST(left >= tokens - takes.certain - takes.unknown);
}

}  // namespace redis_test

#endif
