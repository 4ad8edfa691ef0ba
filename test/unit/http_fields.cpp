// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/http_fields.hpp"

#include "weir/decision.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <string_view>

using namespace std::chrono_literals;
using weir::decision;
using weir::quota;
using weir::http::named_quota;

namespace {

std::string policy_of(named_quota const& q) {
  return weir::http::ratelimit_policy(std::span{&q, 1});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(http_fields)

BOOST_AUTO_TEST_CASE(policy_names_every_quota) {
  named_quota const quotas[] = {{"burst", quota::per_second(100).burst(200)},
                                {"daily", quota::per_day(10'000)},
                                {"bytes", quota::per_minute(1 << 20), "content-bytes"}};
  BOOST_TEST(
      weir::http::ratelimit_policy(quotas) ==
      R"("burst";q=200;w=2, "daily";q=10000;w=86400, "bytes";q=1048576;qu="content-bytes";w=60)");
}

BOOST_AUTO_TEST_CASE(a_window_is_a_whole_number_of_seconds_and_not_none) {
  BOOST_TEST(policy_of({"a", quota::per(7, 3s).burst(5)}) == R"("a";q=5;w=3)");  // 2.14
  BOOST_TEST(policy_of({"a", quota::per_second(1000).burst(1)}) == R"("a";q=1;w=1)");
  BOOST_TEST(policy_of({"a", quota{}}) == R"("a";q=0;w=1)");
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  BOOST_TEST(policy_of({"a", quota::per(1, weir::duration::max()).burst(most)}) ==
             R"("a";q=999999999999999;w=999999999999999)");
}

BOOST_AUTO_TEST_CASE(a_grant_says_what_remains_and_when_all_is_back) {
  decision const d{
      .allowed = true, .cost = 1, .capacity = 200, .remaining = 137, .reset_after = 630ms};
  BOOST_TEST(weir::http::ratelimit(d, "burst") == R"("burst";r=137;t=1)");
  BOOST_TEST(weir::http::retry_after(d).empty());
}

BOOST_AUTO_TEST_CASE(a_refusal_says_when_to_come_again_in_both_fields) {
  decision const d{
      .cost = 1, .capacity = 200, .remaining = 0, .retry_after = 2s + 1ns, .reset_after = 1h};
  BOOST_TEST(weir::http::ratelimit(d, "burst") == R"("burst";r=0;t=3)");
  BOOST_TEST(weir::http::retry_after(d) == "3");
  decision const soon{.cost = 1, .retry_after = 1ns, .reset_after = 1s};
  BOOST_TEST(weir::http::retry_after(soon) == "1");
  decision const exact{.cost = 1, .retry_after = 2s, .reset_after = 2s};
  BOOST_TEST(weir::http::retry_after(exact) == "2");
  decision const nothing{};
  BOOST_TEST(weir::http::retry_after(nothing) == "1");
}

BOOST_AUTO_TEST_CASE(the_quota_that_binds_is_the_one_named) {
  named_quota const quotas[] = {{"burst", quota::per_second(10)}, {"daily", quota::per_day(20)}};
  decision d{.allowed = true,
             .binding = 1,
             .cost = 1,
             .capacity = 20,
             .remaining = 3,
             .reset_after = 73'440s};
  BOOST_TEST(weir::http::ratelimit(d, quotas) == R"("daily";r=3;t=73440)");
  d.binding = 3;
  BOOST_TEST(weir::http::ratelimit(d, quotas) == R"("";r=3;t=73440)");
}

BOOST_AUTO_TEST_CASE(F27_a_name_cannot_break_out_of_its_field) {
  using namespace std::string_literals;
  decision const d{.allowed = true, .remaining = 1};
  BOOST_TEST(weir::http::ratelimit(d, std::string_view{"a\r\nSet-Cookie: x=\"1\"\0\x7f\xff\\"s}) ==
             R"("a__Set-Cookie: x=\"1\"___\\";r=1;t=0)");
}

BOOST_AUTO_TEST_CASE(field_names) {
  BOOST_TEST(weir::http::ratelimit_field == "RateLimit");
  BOOST_TEST(weir::http::ratelimit_policy_field == "RateLimit-Policy");
  BOOST_TEST(weir::http::retry_after_field == "Retry-After");
}

BOOST_AUTO_TEST_SUITE_END()
