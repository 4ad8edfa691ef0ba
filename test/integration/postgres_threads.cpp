// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// One store, used by several threads at once.

#include "postgres_bed.hpp"
#include "shared_store.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>

namespace {

namespace asio = boost::asio;
using namespace postgres_test;

bool may_end(error_code ec) { return ec == errc::closed || ec == asio::error::operation_aborted; }

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_threads)

BOOST_AUTO_TEST_CASE(R1_R4_threads_share_a_store) {
  bed b;
  let_locks_take_long(b.db);
  shared_test::share(
      [&](asio::any_io_executor const& on) {
        return postgres_store{on, the_server().conninfo(b.database), quick()};
      },
      may_end);
}

// Whoever waits is told, by the thread that drops the last handle or by another.
BOOST_AUTO_TEST_CASE(R7_the_last_handle_goes_in_one_thread_while_others_wait) {
  bed const b;
  asio::thread_pool pool{3};
  std::atomic<int> ended{0};
  constexpr int rounds = 12;
  constexpr int each = 6;
  for (int round = 0; round != rounds; ++round) {
    postgres_store const store{pool.get_executor(), the_server().conninfo(b.database), quick()};
    for (int i = 0; i != each; ++i) {
      asio::post(pool, [&ended, i, mine = store] {
        if (i % 2 == 0) {
          mine.async_execute(command::await_jobs{}, [&](error_code, hint) { ++ended; });
        } else {
          mine.async_execute(command::inspect_lock{"key"},
                             [&](error_code, lock_info const&) { ++ended; });
        }
      });
    }
  }
  pool.join();
  BOOST_TEST(ended == rounds * each);
}

BOOST_AUTO_TEST_SUITE_END()
