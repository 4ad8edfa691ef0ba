// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "tokens_jobs.hpp"

#include <boost/asio/use_future.hpp>

#include <future>

using namespace test;
namespace asio = boost::asio;

BOOST_FIXTURE_TEST_SUITE(tokens_jobs_futures, tokens_fixture)

BOOST_AUTO_TEST_CASE(futures) {
  for_each_operation(queue, [&](auto start) {
    auto future = start(asio::use_future);
    io.restart();
    io.run();
    future.get();
    ++operations;
  });
  for_each_refused_operation(queue, [&](auto start) {
    auto future = start(asio::use_future);
    io.restart();
    io.run();
    BOOST_CHECK_THROW(future.get(), boost::system::system_error);
    ++operations;
  });
  BOOST_TEST(operations == 27);
}

BOOST_AUTO_TEST_SUITE_END()
