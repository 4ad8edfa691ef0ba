// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/shrink.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

// What a failing history goes through before somebody reads it.

namespace {

using namespace std::chrono_literals;
using namespace weir;
using namespace weir::testing;

std::vector<int> numbers(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  return out;
}

bool has(std::vector<int> const& v, int n) { return std::find(v.begin(), v.end(), n) != v.end(); }

std::vector<int> nothing_simpler(int) { return {}; }

BOOST_AUTO_TEST_SUITE(shrinking)

BOOST_AUTO_TEST_CASE(finds_the_two_operations_that_matter) {
  for (int first = 0; first < 50; first += 7) {
    for (int last = first + 1; last < 50; last += 5) {
      auto const fails = [&](std::vector<int> const& v) { return has(v, first) && has(v, last); };
      auto const shortest = shrink(numbers(50), fails, nothing_simpler, 1000);
      BOOST_TEST(shortest == (std::vector<int>{first, last}), boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(leaves_nothing_that_can_be_left_out) {
  // Fails with any three numbers of which one is large.
  auto const fails = [](std::vector<int> const& v) {
    return v.size() >= 3 && *std::max_element(v.begin(), v.end()) > 40;
  };
  auto const shortest = shrink(numbers(60), fails, nothing_simpler, 1000);
  BOOST_TEST(shortest.size() == 3U);
  BOOST_TEST(fails(shortest));
}

BOOST_AUTO_TEST_CASE(makes_operations_simpler) {
  auto const fails = [](std::vector<int> const& v) {
    return std::any_of(v.begin(), v.end(), [](int i) { return i >= 5; });
  };
  auto const simpler = [](int i) {
    return i == 0 ? std::vector<int>{} : std::vector<int>{i / 2, i - 1};
  };
  auto const shortest = shrink(numbers(60), fails, simpler, 1000);
  BOOST_TEST(shortest == std::vector<int>{5}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stops_after_as_many_attempts_as_it_is_allowed) {
  int asked = 0;
  auto const fails = [&](std::vector<int> const& v) {
    ++asked;
    return v.size() > 1;
  };
  auto const shortest = shrink(numbers(1000), fails, nothing_simpler, 10);
  BOOST_TEST(asked == 10);
  BOOST_TEST(shortest.size() > 1U);
}

BOOST_AUTO_TEST_CASE(an_empty_sequence_that_fails_stays_empty) {
  auto const shortest = shrink(numbers(5), [](auto const&) { return true; }, nothing_simpler, 100);
  BOOST_TEST(shortest.empty());
}

BOOST_AUTO_TEST_CASE(commands_are_printed_readably) {
  using namespace std::string_view_literals;
  BOOST_TEST(to_text(command::acquire_lock{"k\0\"y"sv, "h", 1500ms}) ==
             "acquire_lock key=\"k\\x00\\x22y\" holder=\"h\" ttl=1500ms");
  BOOST_TEST(to_text(lock_grant{true, 7, 1h, {}}) == "granted=yes fence=7 expires_in=1h");
  BOOST_TEST(to_text(lock_grant{}) == "nothing");
}

BOOST_AUTO_TEST_CASE(answers_differ_where_they_should) {
  lock_grant const rule{true, 7, 10s, {}};
  auto const differ = [&](lock_grant const& store, duration slack) {
    fence_book fences;
    return difference(fields_of(rule), fields_of(store), slack, fences, "key").has_value();
  };
  BOOST_TEST(!differ({true, 123, 10s, {}}, 0s));
  BOOST_TEST(differ({false, 123, 10s, {}}, 0s));
  BOOST_TEST(differ({true, 0, 10s, {}}, 0s));
  BOOST_TEST(differ({true, 123, 10s + 1ns, {}}, 0s));
  BOOST_TEST(!differ({true, 123, 10s + 1ns, {}}, 1ns));
  BOOST_TEST(differ({true, 123, 10s, "somebody"}, 0s));
}

BOOST_AUTO_TEST_CASE(answers_that_are_printed_alike_may_differ) {
  auto const differ = [](auto const& rule, auto const& store) {
    fence_book fences;
    return difference(fields_of(rule), fields_of(store), 1h, fences, "key").has_value();
  };
  std::string const start(limits::holder_size - 1, 'h');
  lock_grant const rule{false, 0, 1s, start + 'a'};
  lock_grant const store{false, 0, 1s, start + 'b'};
  BOOST_TEST(to_text(rule) == to_text(store));
  BOOST_TEST(differ(rule, store));
  BOOST_TEST(!differ(rule, rule));

  enqueued one{.outcome = enqueue_outcome::duplicate, .other = {}};
  *std::prev(one.other.end()) = 1;
  auto other = one;
  *other.other.begin() = 1;
  BOOST_TEST(to_text(one) == to_text(other));
  BOOST_TEST(differ(one, other));
  other = one;
  other.outcome = static_cast<enqueue_outcome>(200);
  BOOST_TEST(to_text(other) == "outcome=out of range other=#0001");
  BOOST_TEST(differ(one, other));
  auto another = other;
  another.outcome = static_cast<enqueue_outcome>(100);
  BOOST_TEST(differ(another, other));
}

BOOST_AUTO_TEST_CASE(an_error_is_the_same_whatever_it_says_besides) {
  auto const differ = [](error_code const& rule, error_code const& store) {
    fence_book fences;
    using answer = result<lease_renewal>;
    return difference(fields_of(answer{rule}), fields_of(answer{store}), 0s, fences, "key")
        .has_value();
  };
  auto const told = weir::detail::explained(errc::lease_lost, "another has it");
  BOOST_TEST(told.message() != make_error_code(errc::lease_lost).message());
  BOOST_TEST(!differ(errc::lease_lost, told));
  BOOST_TEST(differ(errc::lease_lost, errc::closed));
}

BOOST_AUTO_TEST_CASE(spans_differ_that_are_further_apart_than_a_span_can_say) {
  fence_book fences;
  auto const rule = fields_of(lease_renewal{duration::max()});
  auto const store = fields_of(lease_renewal{duration{-2}});
  BOOST_TEST(difference(rule, store, 1h, fences, "key").has_value());
}

BOOST_AUTO_TEST_CASE(fences_are_compared_by_order) {
  fence_book fences;
  BOOST_TEST(!fences.match("key", 1, 100).has_value());
  BOOST_TEST(!fences.match("key", 1, 100).has_value());
  BOOST_TEST(fences.match("key", 1, 101).has_value());
  BOOST_TEST(fences.match("key", 2, 100).has_value());
  BOOST_TEST(!fences.match("key", 3, 101).has_value());
  BOOST_TEST(!fences.match("other", 1, 5).has_value());
  BOOST_TEST(fences.of_store("key", 3) == 101U);
  BOOST_TEST(fences.of_store("key", 0) == 0U);
}

BOOST_AUTO_TEST_CASE(dice_fall_the_same_everywhere) {
  dice d{1};
  BOOST_TEST(d.bits() == 0x910a2dec89025cc1U);
  BOOST_TEST(d.bits() == 0xbeeb8da1658eec67U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
