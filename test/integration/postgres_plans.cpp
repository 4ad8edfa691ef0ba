// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What is answered does not depend on how the server goes about it: which plan it makes, which
// depends on what its statistics happened to see, and who else draws a fence at the same time.

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// Jobs of one priority whose order is the opposite of that of their ids.
std::vector<new_job> backwards(int from, int to) {
  std::vector<new_job> out;
  for (auto n = from; n <= to; ++n) {
    out.push_back(job_of(static_cast<std::uint8_t>(n)));
    out.back().delay = (20 - n) * 1us;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_plans)

// R4: the best job first, also where autovacuum looked while the queue had one job, so that the
// server expects no more than one.
BOOST_AUTO_TEST_CASE(jobs_come_in_their_order_whatever_the_plan_is) {
  for (std::string const settings :
       {"", "enable_hashjoin = off", "enable_nestloop = off", "enable_indexscan = off"}) {
    for (int const seen : {0, 1, 2, 5}) {
      bed b{quick(), settings};
      time_point const then{std::chrono::sys_days{std::chrono::year{2026} / 6 / 1}};
      for (auto const& jobs : {backwards(1, seen), backwards(seen + 1, 12)}) {
        if (jobs.empty()) continue;
        command::at<command::enqueue_jobs> const enqueue{{"q", jobs}, then};
        BOOST_TEST_REQUIRE(b(enqueue).has_value());
        if (std::ssize(jobs) == seen) b.db.must("ANALYZE weir.jobs");
      }
      command::at<command::dequeue_jobs> const dequeue{{"q", "h", 1, 6, 1h}, then + 1s};
      for (int const repeated : {0, 1}) {
        auto const taken = b(dequeue);
        BOOST_TEST_REQUIRE(taken.has_value());
        std::vector<job_id> order;
        for (auto const& j : taken->jobs) order.push_back(j.id);
        std::vector<job_id> const best{id(12), id(11), id(10), id(9), id(8), id(7)};
        BOOST_TEST((order == best), settings << ", " << seen << ", repeated: " << repeated);
      }
    }
  }
}

// R5: a step that looked at the sequence before others raised it does not lower it again.
BOOST_AUTO_TEST_CASE(the_sequence_of_fences_is_never_set_back) {
  bed b;
  auto const now = b.db.number("SELECT weir.clock()");
  auto const raise = [&](std::int64_t time) {
    return "SELECT weir.raise_fences(" + std::to_string(time) + ")";
  };
  b.db.must("SELECT setval('weir.fences', 5)");
  b.db.must(raise(now));
  auto const highest = b.db.number("SELECT nextval('weir.fences')");
  BOOST_TEST(highest > now / 1000);
  b.db.must(raise(now - 1'000'000));  // it had looked before
  BOOST_TEST(b.db.number("SELECT nextval('weir.fences')") > highest);
  // A transaction that stays open keeps nobody from raising it, and takes nothing back.
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN; SELECT setval('weir.fences', 5)");
  own.must(raise(now));
  b.db.must("SET lock_timeout = '1s'; SELECT setval('weir.fences', 5)");
  b.db.must(raise(now));
  own.must("ROLLBACK");
  BOOST_TEST(b.db.number("SELECT nextval('weir.fences')") > now / 1000);
}

BOOST_AUTO_TEST_SUITE_END()
