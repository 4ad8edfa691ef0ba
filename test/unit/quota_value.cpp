// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The small values: quota, unique strategies, job states, decisions.

#include "weir/decision.hpp"
#include "weir/job.hpp"
#include "weir/quota.hpp"
#include "weir/unique.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <type_traits>

using namespace std::chrono_literals;
using weir::job_state;
using weir::quota;
using weir::unique_strategy;

// Views of quotas travel in commands, and options of them stand beside co_await.
static_assert(std::is_trivially_copyable_v<quota> && std::is_trivially_destructible_v<quota>);
static_assert(std::is_trivially_copyable_v<weir::decision>);

BOOST_AUTO_TEST_SUITE(quota_value)

BOOST_AUTO_TEST_CASE(a_quota_says_how_fast_and_how_much) {
  constexpr auto q = quota::per_second(100).burst(200);
  static_assert(q.tokens() == 100 && q.period() == 1s && q.capacity() == 200);
  constexpr auto units = std::array{quota::per_second(7), quota::per_minute(7), quota::per_hour(7),
                                    quota::per_day(7), quota::per(7, 90s)};
  constexpr auto periods = std::array<weir::duration, 5>{1s, 1min, 1h, 24h, 90s};
  for (std::size_t i = 0; i < units.size(); ++i) {
    BOOST_TEST(units[i].tokens() == 7U);
    BOOST_TEST((units[i].period() == periods[i]));
    BOOST_TEST(units[i].capacity() == 7U);  // a burst of the same size unless said
  }
}

BOOST_AUTO_TEST_CASE(burst_makes_another_quota_and_changes_nothing_else) {
  constexpr auto q = quota::per_minute(5);
  constexpr auto bigger = q.burst(50);
  BOOST_TEST(q.capacity() == 5U);
  BOOST_TEST(bigger.tokens() == 5U);
  BOOST_TEST((bigger.period() == 1min));
  BOOST_TEST(bigger.capacity() == 50U);
  BOOST_TEST((bigger.burst(5) == q));
  BOOST_TEST((bigger != q));
}

BOOST_AUTO_TEST_CASE(a_quota_holds_whatever_it_is_given_until_it_is_used) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  constexpr auto q = quota::per(most, weir::duration::max()).burst(0);
  BOOST_TEST(q.tokens() == most);
  BOOST_TEST(q.capacity() == 0U);
  BOOST_TEST((quota{} == quota::per(0, 0s)));
}

BOOST_AUTO_TEST_CASE(a_strategy_says_when_its_key_is_held) {
  struct row {
    unique_strategy strategy;
    bool waiting, running, start;
  };
  for (auto const& [strategy, waiting, running, start] : {
           row{unique_strategy::none, false, false, false},
           row{unique_strategy::until_executed, true, false, false},
           row{unique_strategy::until_executing, true, false, true},
           row{unique_strategy::while_executing, false, true, true},
           row{unique_strategy::until_and_while_executing, true, true, true},
           row{unique_strategy::until_expired, true, false, false},
       }) {
    BOOST_TEST(holds_while_waiting(strategy) == waiting);
    BOOST_TEST(holds_while_running(strategy) == running);
    BOOST_TEST(needs_start(strategy) == start);
  }
}

BOOST_AUTO_TEST_CASE(every_job_state_has_a_name_and_is_terminal_or_not) {
  std::set<std::string_view> names;
  for (auto const state : {job_state::pending, job_state::leased, job_state::completed,
                           job_state::dead, job_state::cancelled}) {
    names.insert(to_string(state));
  }
  BOOST_TEST(names.size() == 5U);
  BOOST_TEST(!names.contains("?"));
  BOOST_TEST(to_string(job_state{77}) == "?");
  BOOST_TEST(!is_terminal(job_state::pending));
  BOOST_TEST(!is_terminal(job_state::leased));
  BOOST_TEST(is_terminal(job_state::completed));
  BOOST_TEST(is_terminal(job_state::dead));
  BOOST_TEST(is_terminal(job_state::cancelled));
}

BOOST_AUTO_TEST_CASE(a_mark_names_a_grant) {
  weir::bucket_mark a;
  weir::bucket_mark b;
  BOOST_TEST((a == b));
  b.arrival[weir::limits::quotas - 1] = 1;
  BOOST_TEST((a != b));
}

BOOST_AUTO_TEST_SUITE_END()
