// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands at told times, beside others at the store's own.

#include "weir/command/at.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <string>

namespace {

using namespace weir;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(memory_told_times)

BOOST_AUTO_TEST_CASE(what_is_live_at_a_told_time_is_not_tidied_by_the_store_s_clock) {
  boost::asio::io_context io;
  memory_store const store{io.get_executor()};
  time_point const then = std::chrono::sys_days{std::chrono::year{2020} / 1 / 1};
  auto const at = [&](auto const& c) { return store.execute(command::at{c, then}).value(); };
  auto const now = [&](auto const& c) { return store.execute(c).value(); };
  std::array<new_job, 1> jobs{};
  jobs[0].kind = "kind";
  jobs[0].id.data[0] = 1;
  jobs[0].retention = 1h;

  BOOST_TEST(at(command::acquire_lock{"told", "h", 1h}).granted);
  BOOST_TEST(at(command::acquire_permit{"told", "h", 1, 1h, {}}).granted);
  at(command::enqueue_jobs{"told", jobs});
  BOOST_TEST((at(command::cancel_job{"told", jobs[0].id}) == cancel_outcome::cancelled));
  for (int i = 0; i != 2000; ++i) {  // some on the same stripe of the tables, too
    auto const key = std::to_string(i);
    BOOST_TEST(now(command::acquire_lock{key, "h", 1h}).granted);
    BOOST_TEST(now(command::acquire_permit{key, "h", 1, 1h, {}}).granted);
    now(command::enqueue_jobs{key, jobs});
  }
  BOOST_TEST(at(command::inspect_lock{"told"}).held);
  BOOST_TEST(at(command::inspect_permits{"told"}).in_use == 1U);
  BOOST_TEST(at(command::find_job{"told", jobs[0].id}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
