// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Each allocation of an initiation fails in turn: it throws, or it completes, and never both.

#include "failing_allocations.hpp"
#include "sqlite_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <exception>
#include <string>

namespace {

using namespace sqlite_test;

/// @return was there memory enough?
template <class Initiate>
bool starts(boost::asio::io_context& io, int allocations, Initiate initiate) {
  int calls = 0;
  bool threw = false;
  error_code ended;
  auto handler = [&](error_code ec, auto const&...) {
    ++calls;
    ended = ec;
  };
  weir_test::allocations_left = allocations;
  try {
    initiate(handler);
  } catch (std::exception const&) {  // Asio may say it as `bad_executor`
    threw = true;
  }
  bool const enough = weir_test::allocations_left >= 0;
  weir_test::allocations_left = -1;
  io.restart();
  io.run();
  BOOST_TEST(calls == (threw ? 0 : 1), calls << " calls with " << allocations);
  if (!enough && !threw) BOOST_TEST(ended == boost::system::errc::not_enough_memory);
  return enough;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_out_of_memory)

BOOST_AUTO_TEST_CASE(an_initiation_throws_or_completes) {
  auto o = quick();
  o.in_place = false;
  bed b{o};
  std::string const key(100, 'k');
  BOOST_TEST(b(command::acquire_lock{key, "me", 1h})->granted);
  int n = 0;
  while (!starts(b.io, n, [&](auto const& handler) {
    b.store.async_execute(command::acquire_lock{key, "another", 1h}, handler);
  })) {
    ++n;
  }
  BOOST_TEST(n >= 2);
  n = 0;
  while (!starts(b.io, n, [&](auto const& handler) { b.store.async_open(handler); })) ++n;
  BOOST_TEST(n >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
