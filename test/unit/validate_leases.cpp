// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// R8: the input of every command on permits and locks is checked before anything is done.

#include "validate_checks.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using namespace weir::test;
namespace command = weir::command;
namespace limits = weir::limits;
using weir::errc;

static_assert(weir::command_type<command::acquire_permit>);
static_assert(weir::command_type<command::renew_permit>);
static_assert(weir::command_type<command::release_permit>);
static_assert(weir::command_type<command::await_permit>);
static_assert(weir::command_type<command::inspect_permits>);
static_assert(weir::command_type<command::acquire_lock>);
static_assert(weir::command_type<command::renew_lock>);
static_assert(weir::command_type<command::release_lock>);
static_assert(weir::command_type<command::inspect_lock>);
static_assert(weir::command_type<command::at<command::acquire_lock>>);

BOOST_AUTO_TEST_SUITE(R8_validate_leases)

BOOST_AUTO_TEST_CASE(acquire_permit) {
  using c = command::acquire_permit;
  c const good{.key = "k", .holder = "h", .limit = 3, .ttl = 1s, .patience = 0s};
  check_key(good);
  check_holder(good);
  check_field<c, std::uint32_t>(good, &c::limit, errc::invalid_limit, {1, limits::permits},
                                {0, limits::permits + 1, UINT32_MAX});
  check_ttl(good, &c::ttl);  // F9: a nanosecond is a time to live
  check_wait(good, &c::patience);
}

BOOST_AUTO_TEST_CASE(renew_permit) {
  using c = command::renew_permit;
  c const good{.key = "k", .holder = "h", .fence = 0, .ttl = 1s};
  check_key(good);
  check_holder(good);
  check_ttl(good, &c::ttl);
}

BOOST_AUTO_TEST_CASE(release_permit) {
  command::release_permit const good{.key = "k", .holder = "h"};
  check_key(good);
  check_holder(good);
}

BOOST_AUTO_TEST_CASE(await_permit) {
  command::await_permit const good{.key = "k", .holder = "h"};
  check_key(good);
  check_holder(good);
}

BOOST_AUTO_TEST_CASE(inspect_permits) {
  using c = command::inspect_permits;
  c const good{.key = "k"};
  check_key(good);
  check_field<c, std::uint32_t>(good, &c::limit, errc::invalid_batch, {0, 1, limits::batch},
                                {limits::batch + 1, UINT32_MAX});
}

BOOST_AUTO_TEST_CASE(acquire_lock) {
  using c = command::acquire_lock;
  c const good{.key = "k", .holder = "h", .ttl = 1s};
  check_key(good);
  check_holder(good);
  check_ttl(good, &c::ttl);
}

BOOST_AUTO_TEST_CASE(renew_lock) {
  using c = command::renew_lock;
  c const good{.key = "k", .holder = "h", .fence = 1, .ttl = 1s};
  check_key(good);
  check_holder(good);
  check_ttl(good, &c::ttl);
}

BOOST_AUTO_TEST_CASE(release_lock) {
  command::release_lock const good{.key = "k", .holder = "h"};
  check_key(good);
  check_holder(good);
}

BOOST_AUTO_TEST_CASE(inspect_lock) { check_key(command::inspect_lock{.key = "k"}); }

BOOST_AUTO_TEST_CASE(the_first_error_is_that_of_the_first_bad_field) {
  command::acquire_permit c{};
  expect_bad(c, errc::invalid_key);
  c.key = "k";
  expect_bad(c, errc::invalid_holder);
  c.holder = "h";
  c.limit = 0;
  expect_bad(c, errc::invalid_limit);
  c.limit = 1;
  expect_bad(c, errc::invalid_ttl);
  c.ttl = 1s;
  c.patience = -1s;
  expect_bad(c, errc::invalid_wait);
  c.patience = 0s;
  expect_good(c);
}

BOOST_AUTO_TEST_CASE(every_error_of_a_bad_input_is_of_that_kind) {
  BOOST_TEST((weir::rule::validate(command::acquire_permit{}) == weir::condition::bad_input));
  BOOST_TEST((weir::rule::validate(command::acquire_lock{}) == weir::condition::bad_input));
}

BOOST_AUTO_TEST_SUITE_END()
