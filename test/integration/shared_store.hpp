// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SHARED_STORE_HPP
#define WEIR_TEST_INTEGRATION_SHARED_STORE_HPP

#include "integration/broken_network.hpp"
#include "integration/patience.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <span>
#include <string>
#include <tuple>
#include <utility>

// One store, and copies of it, used by several threads at once, one of which closes it: for the
// thread sanitizer, above all.
namespace shared_test {

using namespace network_test;

/// Boost.Test is not for several threads.
struct findings {
  void require(bool ok) { mistakes += ok ? 0 : 1; }

  std::atomic<int> mistakes{0};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<std::uint32_t> done{0};
};

inline job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) out.data[i] = static_cast<std::uint8_t>(n >> (8 * i));
  out.data[15] = 1;
  return out;
}

/// A permit of three, in turns; and a job, which is somebody's.
template <class Store>
asio::awaitable<void> use(Store store, std::uint32_t number, findings& all) {
  auto const me = "holder" + std::to_string(number);
  for (std::uint32_t round = 0; round != 10; ++round) {
    command::acquire_permit const permit{"key", me, 3, lasting, lasting};
    for (;;) {
      auto const [ec, got] = co_await store.async_execute(permit, tuple);
      all.require(!ec);
      if (ec || got.granted) break;
      command::await_permit const turn{"key", me};
      co_await store.async_execute(turn, tuple);
    }
    auto const inside = ++all.inside;
    all.require(inside <= 3);
    for (auto seen = all.most.load();
         seen < inside && !all.most.compare_exchange_weak(seen, inside);) {
    }
    new_job j;
    j.id = id_of(number * 1000 + round);
    j.kind = "kind";
    command::enqueue_jobs const enqueue{"queue", std::span{&j, 1}};
    auto const queued = co_await store.async_execute(enqueue, tuple);
    all.require(!std::get<0>(queued));
    command::dequeue_jobs const dequeue{"queue", me, 0, 1, lasting};
    // There is one for each, but who took mine may have added its own a moment too late.
    dequeued mine;
    auto const give_up = std::chrono::steady_clock::now() + weir_test::patience;
    while (mine.jobs.empty() && std::chrono::steady_clock::now() < give_up) {
      auto [failed, some] = co_await store.async_execute(dequeue, tuple);
      all.require(!failed);
      mine = std::move(some);
    }
    all.require(mine.jobs.size() == 1);
    if (mine.jobs.empty()) co_return;
    std::array const ended{finished_job{mine.jobs[0].id, mine.jobs[0].fence, {}}};
    command::complete_jobs const complete{"queue", ended};
    auto const [lost, outcomes] = co_await store.async_execute(complete, tuple);
    all.require(!lost && outcomes[0] == complete_outcome::completed);
    ++all.done;
    --all.inside;
    command::release_permit const back{"key", me, 0};
    auto const [gone, released] = co_await store.async_execute(back, tuple);
    all.require(!gone && released.freed);
  }
}

/// Asks for what comes by itself, and does not wait for it.
template <class Store>
asio::awaitable<void> give_up(Store store, std::uint32_t number, findings& all) {
  auto const me = "idler" + std::to_string(number);
  for (int round = 0; round != 20; ++round) {
    command::await_permit const turn{"nobody's", me};
    co_await store.async_execute(turn, asio::cancel_after(1ms, tuple));
    command::await_jobs const some{0};
    co_await store.async_execute(some, asio::cancel_after(1ms, tuple));
    command::inspect_lock const look{"key"};
    auto const seen = co_await store.async_execute(look, asio::cancel_after(1ms, tuple));
    auto const ec = std::get<0>(seen);
    all.require(!ec || ec == asio::error::operation_aborted);
  }
}

/// A store that `make(executor)` makes.
///
/// @param may_end how a command that only reads may end, besides well, where the store is closed
template <class Make>
void share(Make const& make, bool (*may_end)(error_code)) {
  constexpr std::size_t threads = 3;
  constexpr std::uint32_t users = 8;
  findings all;
  asio::thread_pool pool{threads};
  auto const store = make(pool.get_executor());
  std::promise<error_code> ended;
  if constexpr (requires { store.async_run(); }) {
    store.async_run([&](error_code ec) { ended.set_value(ec); });
  } else {
    ended.set_value({});
  }
  std::array<std::promise<void>, 2 * users> over;
  auto const done = [&](std::uint32_t i) {
    return [&all, &over, i](std::exception_ptr e) {
      all.require(!e);
      over.at(i).set_value();
    };
  };
  for (std::uint32_t i = 0; i != users; ++i) {
    asio::co_spawn(asio::make_strand(pool), use(store, i, all), done(i));
    asio::co_spawn(asio::make_strand(pool), give_up(store, i, all), done(users + i));
  }
  for (auto& one : over) one.get_future().wait();
  // Some ask, and wait, while another one closes.
  std::atomic<int> answers{0};
  std::atomic<int> asked{0};
  for (int i = 0; i != 300; ++i) {
    asio::post(pool, [&, i, store] {
      if (i == 150) store.close();
      ++asked;
      if (i % 3 == 0) {
        store.async_execute(command::await_permit{"nobody's", "me"},
                            [&](error_code, hint) { ++answers; });
      } else {
        store.async_execute(command::inspect_lock{"key"}, [&](error_code ec, lock_info const&) {
          all.require(!ec || may_end(ec));
          ++answers;
        });
      }
    });
  }
  BOOST_TEST(!ended.get_future().get());
  pool.join();
  BOOST_TEST(all.mistakes == 0);
  BOOST_TEST(all.done == 10 * users);
  BOOST_TEST(all.most > 1);  // or nothing happened together
  BOOST_TEST(answers == asked);
}

}  // namespace shared_test

#endif
