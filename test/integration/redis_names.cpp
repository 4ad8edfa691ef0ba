// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A name that nobody answers for.

#include "patience.hpp"
#include "redis_server.hpp"

#include <boost/test/unit_test.hpp>

#include <netdb.h>

#include <atomic>
#include <optional>
#include <utility>

namespace {

std::atomic<bool> silent{true};

}  // namespace

/// In place of the C library's: it answers nothing while the test has it so.
extern "C" int getaddrinfo(char const*, char const*, addrinfo const*, addrinfo**) {
  silent.wait(true);
  return EAI_FAIL;
}

namespace {

using namespace redis_test;
using weir_test::happens;

/// A context waits for what its resolver is at when it goes.
struct release {
  ~release() {
    silent = false;
    silent.notify_all();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_names)

BOOST_AUTO_TEST_CASE(F70_a_name_that_nobody_answers_for_does_not_hide_the_second_host) {
  server const second;
  redis_address several{"first.example", 1};
  several.or_at("127.0.0.1", second.port());
  auto o = unhurried();
  o.connect_timeout = 500ms;
  boost::asio::io_context io;
  std::optional<release> held{std::in_place};
  {
    redis_store const store{io.get_executor(), several, o};
    store.async_run([](error_code) {});
    auto const got = ask(io, store, command::acquire_lock{"key", "me", 1h});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
    BOOST_TEST(got->granted);
    BOOST_TEST(store.last_failure().text ==
               "first.example: the name cannot be looked up: no answer within connect_timeout");
    store.close();
  }
  // Its end is told nobody: a look-up may be all that is left of a store.
  redis_store const closed{io.get_executor(), redis_address{"first.example", 1}, unhurried()};
  std::optional<error_code> ended;
  closed.async_run([&](error_code ec) { ended = ec; });
  io.restart();
  io.poll();
  closed.close();
  BOOST_TEST_REQUIRE(happens(io, [&] { return ended.has_value(); }));
  BOOST_TEST(!*ended, ended->message());
  held.reset();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_SUITE_END()
