// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_CONVERSATION_HPP
#define WEIR_TEST_INTEGRATION_REDIS_CONVERSATION_HPP

#include "integration/broken_network.hpp"
#include "integration/redis_server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// What a store says on a network that breaks, and what has to have come of it.
namespace redis_test {

using namespace network_test;

inline job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) out.data[i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[15] = 1;
  return out;
}

/// Nothing but what the tests ask for is said.
inline redis_options quiet(std::string_view prefix) {
  auto o = unhurried();
  o.prefix = prefix;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 20ms;
  o.health_check_interval = 1h;
  return o;
}

/// About jobs.
inline asio::awaitable<void> converse_about_jobs(redis_store store) {
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
}

/// About everything.
inline asio::awaitable<void> converse_about_all(redis_store store, spent& takes) {
  co_await converse_about_jobs(store);
  co_await converse(store, takes);
}

/// What that has to have done exactly once, whatever became of its answers.
inline void check_all_done(redis_address const& address, redis_options const& o,
                           spent const& takes) {
  bed direct{address, o};
  auto const stats = certain(direct, command::read_queue_stats{"queue"});
  BOOST_TEST(stats.enqueued == 3U);
  BOOST_TEST(stats.pending == 1U);
  BOOST_TEST(stats.leased == 0U);
  check_done(direct, takes);
}

}  // namespace redis_test

#endif
