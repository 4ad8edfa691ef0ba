// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// One store, used by several threads at once; and its connections, which are made in another one.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "shared_store.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <tuple>

namespace {

using namespace nats_test;
using namespace network_test;

bool may_end(error_code ec) { return ec == errc::closed || is_transport(ec); }

/// No answer is a mistake, on a machine that is slow, too: for a server that stays.
nats_options patient() {
  auto o = brisk();
  o.poll_interval = 20ms;
  return o;
}

class tally {
 public:
  void answered() {
    std::lock_guard const lock{mutex_};
    ++answers_;
    changed_.notify_one();
  }
  /// Waits until there are so many more.
  [[nodiscard]] bool get(int more) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, weir_test::patience,
                             [this, all = answers_ + more] { return answers_ >= all; });
  }

  std::atomic<int> mistakes{0};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int answers_ = 0;
};

/// Reads, writes, and gives up, in turns, until the store is closed.
asio::awaitable<void> go_on(nats_store store, std::string me, tally& all) {
  auto const seen = [&](error_code ec) {
    if (!ec) all.answered();
    if (ec && !may_end(ec)) ++all.mistakes;
    return ec != errc::closed;
  };
  for (;;) {
    command::acquire_lock const lock{me, me, lasting};
    auto const held = co_await store.async_execute(lock, tuple);
    if (!seen(std::get<0>(held))) co_return;
    command::read_queue_stats const stats{"queue"};
    auto const read = co_await store.async_execute(stats, tuple);
    if (!seen(std::get<0>(read))) co_return;
    command::await_jobs const some{0};
    co_await store.async_execute(some, asio::cancel_after(1ms, tuple));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_threads)

BOOST_AUTO_TEST_CASE(R1_R4_threads_share_a_store) {
  server s;
  shared_test::share(
      [&](asio::any_io_executor const& on) { return nats_store{on, s.address(), patient()}; },
      may_end);
}

BOOST_AUTO_TEST_CASE(R4_threads_share_a_store_whose_log_becomes_an_image) {
  server s;
  auto o = patient();
  o.image_interval = 4096;
  o.sync_interval = {};
  shared_test::share(
      [&](asio::any_io_executor const& on) { return nats_store{on, s.address(), o}; }, may_end);
  stranger who{s};
  BOOST_TEST(log_of(who).first > 1U);  // it was cut
}

BOOST_AUTO_TEST_CASE(F38_threads_share_a_store_whose_server_comes_and_goes) {
  server s;
  tally all;
  {
    asio::thread_pool pool{3};
    nats_store const store{pool.get_executor(), s.address(), brisk()};
    store.async_run(asio::detached);
    for (int i = 0; i != 8; ++i) {
      auto const me = "holder" + std::to_string(i);
      asio::co_spawn(asio::make_strand(pool), go_on(store, me, all), asio::detached);
    }
    for (int life = 0; life != 5; ++life) {
      BOOST_TEST(all.get(200));
      s.kill();
      if (life != 4) s.start();
    }
    store.close();  // and its last connection, or the thread that tries to make one, goes with it
    pool.join();
  }
  BOOST_TEST(all.mistakes == 0);
}

BOOST_AUTO_TEST_SUITE_END()
