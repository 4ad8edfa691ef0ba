// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_jobs.hpp"

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/detached.hpp>

using namespace test;
namespace asio = boost::asio;

BOOST_FIXTURE_TEST_SUITE(tokens_jobs_timed, tokens_fixture)

BOOST_AUTO_TEST_CASE(detached_and_cancel_after) {
  for_each_operation(queue, [&](auto start) {
    start(asio::detached);
    start(asio::cancel_after(1h, [&](weir::error_code ec, auto&&) {
      BOOST_TEST(!ec, ec.message());
      ++completed;
    }));
    ++operations;
  });
  io.run();
  BOOST_TEST(operations == 21);
  BOOST_TEST(completed == 21);
}

BOOST_AUTO_TEST_SUITE_END()
